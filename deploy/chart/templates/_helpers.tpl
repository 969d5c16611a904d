{{- /* Written by `make docs`, from the source of `rolegate manifests`. */ -}}
{{- define "rolegate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $named := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $named .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- define "rolegate.readyRules" -}}
{{- range .Values.readyKinds }}
{{- $resource := splitn "." 3 (last (splitList "=" .)) }}
- apiGroups: [{{ default "" $resource._2 | quote }}]
  resources: [{{ $resource._0 | quote }}]
  verbs: ["list", "watch"]
{{- end }}
{{- end -}}
