{{- /* The name of every object. Suffixes such as `-certificates` must fit into 63 characters. */ -}}
{{- define "rolegate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $named := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $named .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* The labels of every object. */ -}}
{{- define "rolegate.labels" -}}
app.kubernetes.io/name: {{ include "rolegate.fullname" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* A name, in our namespace, and the labels. */ -}}
{{- define "rolegate.metadata" -}}
name: {{ include "rolegate.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "rolegate.labels" . | nindent 2 }}
{{- end -}}

{{- /* The annotations of what Helm runs at an event and deletes when it succeeds; a failed one is kept for its log. */ -}}
{{- define "rolegate.hook" -}}
helm.sh/hook: {{ .event }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-weight: {{ .weight | quote }}
{{- end -}}

{{- /* A file that `make docs` writes from the program: `generated/FILE.yaml`. */ -}}
{{- define "rolegate.file" -}}
{{- $text := .root.Files.Get (printf "generated/%s.yaml" .file) -}}
{{- if not (regexMatch "(?m)^[^#\\s]" $text) }}
{{- fail (printf "generated/%s.yaml is not there, or empty" .file) }}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- /* One from the program's tables, with the names of the installation. */ -}}
{{- define "rolegate.generated" -}}
{{- tpl (include "rolegate.file" .) .root -}}
{{- end -}}

{{- /*
A role with the rules of `generated/rights/ROLE.KIND.yaml`, and its binding. `role` is what its name ends with, `account` that of the
account; `namespace` is set for a Role.
*/ -}}
{{- define "rolegate.role" -}}
{{- $name := include "rolegate.fullname" .root }}
{{- $file := printf "rights/%s.%s" (default "replicas" .role) (lower .kind) }}
{{- $role := ternary (printf "%s-%s" $name .role) $name (not (empty .role)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include "rolegate.metadataOf" (merge (dict "name" $role) .) | nindent 2 }}
rules:
  {{- include "rolegate.generated" (dict "root" .root "file" $file) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "rolegate.metadataOf" (merge (dict "name" $role) .) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}{{ with .account }}-{{ . }}{{ end }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- /* A name with what else a role or a policy has in its metadata: a namespace, the annotations of a hook. */ -}}
{{- define "rolegate.metadataOf" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
{{- with .hook }}
annotations:
  {{- include "rolegate.hook" . | nindent 2 }}
{{- end }}
labels:
  {{- include "rolegate.labels" .root | nindent 2 }}
{{- end -}}

{{- /* A policy with the spec of `generated/FILE.yaml`, and its binding. `policy` is what its name ends with. */ -}}
{{- define "rolegate.policy" -}}
{{- $name := printf "%s-%s" (include "rolegate.fullname" .root) .policy }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  {{- include "rolegate.metadataOf" (merge (dict "name" $name) .) | nindent 2 }}
spec:
  {{- include "rolegate.generated" (dict "root" .root "file" .file) | nindent 2 }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "rolegate.metadataOf" (merge (dict "name" $name) .) | nindent 2 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{- end -}}

{{- /* The pod of a command that runs once, under an account of its own: `command`, and `more` arguments. */ -}}
{{- define "rolegate.once" -}}
{{- $name := include "rolegate.fullname" .root }}
serviceAccountName: {{ $name }}-{{ .command }}
automountServiceAccountToken: true
restartPolicy: Never
containers:
  - name: {{ .command }}
    args:
      - {{ .command }}
      - --namespace={{ .root.Release.Namespace }}
      - --name={{ $name }}
      - {{ .more }}
    {{- include "rolegate.image" .root | nindent 4 }}
    resources:
      requests:
        cpu: 10m
        memory: 32Mi
      limits:
        memory: 256Mi
    securityContext:
      {{- include "rolegate.containerSecurity" . | nindent 6 }}
{{- include "rolegate.placing" .root | trim | nindent 0 }}
{{- end -}}

{{- /* The image of a container. */ -}}
{{- define "rolegate.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- /* What the restricted Pod Security Standard requires of a container. */ -}}
{{- define "rolegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* What all pods have in common of where and as whom they run. */ -}}
{{- define "rolegate.placing" -}}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
