"""One process of a process group: it finds the others by the variables that PyTorch itself reads, and adds up their ranks."""

import torch
import torch.distributed as group

group.init_process_group("gloo")
total = torch.tensor([float(group.get_rank())])
group.all_reduce(total)
# One write: processes of a pod share the pipe.
print(f"rank {group.get_rank()} of {group.get_world_size()}: {total.item():.0f}\n", end="", flush=True)
group.destroy_process_group()
