{{- /* Written by `make docs`, from the source of `rolegate manifests`. */ -}}
{{- define "rolegate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $named := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $named .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}
