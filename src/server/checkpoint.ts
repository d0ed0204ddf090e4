import { apiTime, describeError } from '../lib/index.ts';
import { containerFieldPath, type Pod } from '../pods/index.ts';
import { json, type Request, type Response, type Route, text } from './router.ts';

/** Who can freeze a container into a file. */
export interface CheckpointHost {
  getPodByName(namespace: string, name: string): Pod | undefined;
  /** Answers where the file lies. Without a time limit the runtime's own counts. */
  checkpoint(
    pod: Pod,
    container: string,
    timeoutSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<string>;
}

export function checkpointRoute(host: CheckpointHost): Route {
  return {
    path: '/checkpoint/{namespace}/{pod}/{container}',
    methods: ['POST'],
    answer: (request, signal) => checkpoint(host, request, signal),
  };
}

async function checkpoint(host: CheckpointHost, request: Request, signal: AbortSignal): Promise<Response> {
  const { namespace = '', pod: name = '', container = '' } = request.params;
  const pod = host.getPodByName(namespace, name);
  if (pod === undefined) return text(404, 'pod does not exist');
  if (containerFieldPath(pod, container) === undefined)
    return text(404, `container ${container} does not exist`);
  const written = request.query.getAll('timeout').at(-1);
  if (written !== undefined && !/^[-+]?\d{1,15}$/.test(written)) {
    return text(404, 'cannot parse value of timeout parameter');
  }
  try {
    const timeout = written === undefined ? undefined : Number(written);
    return json({ items: [await host.checkpoint(pod, container, timeout, signal)] });
  } catch (error) {
    signal.throwIfAborted();
    return text(500, `checkpointing of ${namespace}/${name}/${container} failed (${describeError(error)})`);
  }
}

/** Where a checkpoint is written: pods, namespaces and containers have names without slashes. */
export function checkpointLocation(directory: string, pod: Pod, container: string, nowMs: number): string {
  const { name, namespace } = pod.metadata;
  const time = apiTime(nowMs);
  return `${directory}/checkpoint-${name}_${namespace}-${container}-${time}.tar`;
}
