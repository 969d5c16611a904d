"""Reads a command line by the parser of the engine itself, and prints what it made of some of it: parse.py ENGINE ARGUMENT…"""

import argparse
import json
import sys


def vllm():
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    return make_arg_parser(FlexibleArgumentParser())


class DynamoOnVllm:
    """Two parsers, one after the other."""

    def parse_args(self, arguments):
        from dynamo.vllm.args import _parse_cli_args

        own, of_vllm = _parse_cli_args(arguments)
        return argparse.Namespace(**(vars(of_vllm) | vars(own)))


def sglang():
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def sglang_router():
    from sglang_router.router_args import RouterArgs

    parser = argparse.ArgumentParser()
    RouterArgs.add_cli_args(parser, use_router_prefix=False)
    return parser


def vllm_router():
    from vllm_router.router_args import RouterArgs

    parser = argparse.ArgumentParser()
    RouterArgs.add_cli_args(parser, use_router_prefix=False)
    return parser


def torchrun():
    from torch.distributed.run import get_args_parser

    return get_args_parser()


PARSERS = {
    "torchrun": torchrun,
    "vllm": vllm,
    "sglang": sglang,
    "sglang-router": sglang_router,
    "vllm-router": vllm_router,
    "dynamo.vllm": DynamoOnVllm,
}

if __name__ == "__main__":
    read = vars(PARSERS[sys.argv[1]]().parse_args(sys.argv[2:]))
    print(json.dumps({name: str(value) for name, value in read.items()}))
