import { posix } from 'node:path';
import type { Clock, Logger, MetricRegistry } from '../../lib/index.ts';
import type { PodResourcesDeps } from '../pod-resources/index.ts';
import type { DeviceHost } from './device-host.ts';
import { serveNodeSocket } from './node-socket.ts';

export interface PodResourcesServerDeps extends Pick<PodResourcesDeps, 'pods' | 'given'> {
  readonly rootDir: string;
  readonly host: Pick<DeviceHost, 'clear' | 'serve'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
}

/**
 * Serves the PodResources API, which reports allocated resources to monitoring agents of the node.
 * Its code is loaded at the first request.
 */
export class PodResourcesServer {
  readonly #deps: PodResourcesServerDeps;

  constructor(deps: PodResourcesServerDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { rootDir, metrics } = this.#deps;
    const directory = posix.join(rootDir, 'pod-resources');
    await serveNodeSocket(
      {
        ...this.#deps,
        directory,
        fill: async (server) => {
          const { podResourcesMetrics, servePodResources } = await import('../pod-resources/index.ts');
          servePodResources(server, { ...this.#deps, observer: podResourcesMetrics(metrics) });
        },
      },
      signal,
    );
  }
}
