{{/* The names are fixed: there is one weir in a cluster. */}}

{{- define "weir.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* weir.selector names a part: (list $ "controller") */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* weir.labels are those of every object of a part: (list $ "controller") */}}
{{- define "weir.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_") }}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/* weir.podSecurity is what the Pod Security Standard "restricted" asks of a pod. */}}
{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* weir.containerSecurity is what it asks of a container. */}}
{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* weir.apart keeps replicas on different nodes and in different zones where the cluster has the room. */}}
{{- define "weir.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          matchLabels:
            {{- include "weir.selector" (list . "controller") | nindent 12 }}
    - weight: 50
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "weir.selector" (list . "controller") | nindent 12 }}
{{- end -}}

{{/* weir.user is how the API server knows the controller. */}}
{{- define "weir.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:weir-controller
{{- end -}}
