{{- /* The namespace of all objects. */ -}}
{{- define "gloveport.namespace" -}}
{{- .Values.namespace.name | default .Release.Namespace -}}
{{- end -}}

{{- /* The labels of all objects. */ -}}
{{- define "gloveport.labels" -}}
app.kubernetes.io/name: gloveport
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The pods of sandboxes. */ -}}
{{- define "gloveport.sandboxes" -}}
matchLabels:
  app: openhands-runtime
  gloveport/role: sandbox
{{- end -}}
