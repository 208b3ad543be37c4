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

{{- /* The pods of sandboxes, and those that wait for a session. */ -}}
{{- define "gloveport.sandboxes" -}}
matchLabels:
  app: openhands-runtime
matchExpressions:
  - {key: gloveport/role, operator: In, values: [sandbox, warm]}
{{- end -}}

{{- /* The pods that policies of the namespace let out: those, and gates, but for sandboxes with a policy of their own. */ -}}
{{- define "gloveport.outward" -}}
matchLabels:
  app: openhands-runtime
matchExpressions:
  - {key: gloveport/role, operator: In, values: [sandbox, warm, gate]}
  - {key: gloveport/network, operator: NotIn, values: [own]}
{{- end -}}
