type Json = Readonly<Record<string, unknown>>;

export const core = '/api/v1/namespaces/<ns>';

export function configMap(name: string, data: Json = {}, metadata: Json = {}): Json {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

/** A pod that no scheduler binds, so that its status does not change. */
export function pod(name: string, spec: Json = {}, metadata: Json = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      schedulerName: 'nobody',
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'example.org/a:1' }],
      ...spec,
    },
  };
}

/** A pod bound to a node that does not exist, so that no kubelet terminates it. */
export function boundPod(name: string, spec: Json = {}, metadata: Json = {}): Json {
  return pod(name, { nodeName: 'nowhere', ...spec }, metadata);
}
