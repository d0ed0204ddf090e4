import { KubelingError } from '../lib/index.ts';
import type { PodManager } from '../pods/index.ts';
import { nodePortRequested } from '../resources/index.ts';

/**
 * Returns the URL of a stream of the runtime. Rejects when a pod has its port as host port: the port mapping of CNI would redirect the
 * connection, with all it carries, to that pod.
 */
export function checkStreamUrl(url: string, pods: Pick<PodManager, 'getPods'>): string {
  const ports = new Set([Number(URL.parse(url)?.port ?? '')]);
  const owner = pods.getPods().find((pod) => nodePortRequested(pod, ports) !== undefined);
  if (owner === undefined) return url;
  const { namespace, name } = owner.metadata;
  throw new KubelingError(
    'STREAM_REFUSED',
    `Cannot open a stream as a host port of pod ${namespace}/${name} is the streaming port of the container runtime: delete the pod or restart the runtime`,
  );
}
