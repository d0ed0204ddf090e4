import type { MetricRegistry } from '../../lib/index.ts';

type Method = 'list' | 'get' | 'get_allocatable';

/** Told of each call. Never throws. */
export interface PodResourcesObserver {
  /** The first version of the protocol counts no methods. */
  asked(version: string, method: Method | undefined): void;
  failed(version: string, method: Method): void;
}

const methods: readonly Method[] = ['list', 'get', 'get_allocatable'];

/** Make one for a registry; the names are those dashboards know. */
export function podResourcesMetrics(registry: MetricRegistry): PodResourcesObserver {
  const counter = (name: string, help: string) =>
    registry.counter({
      name: `kubelet_pod_resources_endpoint_${name}`,
      help,
      labels: ['server_api_version'],
    });
  const total = counter('requests_total', 'Calls that asked what pods have, by version of the protocol.');
  const requests = new Map(
    methods.map((method) => [method, counter(`requests_${method}`, `Calls of ${method} among them.`)]),
  );
  const errors = new Map(
    methods.map((method) => [method, counter(`errors_${method}`, `Calls of ${method} that failed.`)]),
  );
  return {
    asked: (version, method) => {
      const labels = { server_api_version: version };
      total.with(labels).inc();
      if (method !== undefined) requests.get(method)?.with(labels).inc();
    },
    failed: (version, method) => errors.get(method)?.with({ server_api_version: version }).inc(),
  };
}
