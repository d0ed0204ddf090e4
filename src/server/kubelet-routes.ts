import type { MetricRegistry } from '../lib/index.ts';
import { metricsContentType } from '../lib/index.ts';
import type { Pod, RuntimePod } from '../pods/index.ts';
import { type HealthCheck, type HealthView, healthCheckResponse, healthResponse } from './health.ts';
import { json, type Request, type Route, text } from './router.ts';

/** The kubelet's state that the server shows in responses; all methods are read-only. */
export interface KubeletView {
  /** The desired pods of this node; static pods with their current status. */
  pods(): Promise<readonly Pod[]>;
  runningPods(signal: AbortSignal): Promise<readonly RuntimePod[]>;
  /** Recorded histories of the pods that match the key, or of all pods. */
  flights(key: string | undefined): unknown;
}

/**
 * /healthz and /livez report whether the process should keep running, /readyz whether the node can
 * run pods now.
 */
export function healthRoutes(
  live: readonly HealthCheck[],
  ready: readonly HealthCheck[] = live,
): readonly Route[] {
  return [
    ...checkRoutes(live, { name: 'healthz', reasons: 'withheld' }),
    ...checkRoutes(live, { name: 'livez', reasons: 'shown' }),
    ...checkRoutes(ready, { name: 'readyz', reasons: 'shown' }),
  ];
}

function checkRoutes(checks: readonly HealthCheck[], view: HealthView): readonly Route[] {
  const path = `/${view.name}`;
  return [
    {
      path,
      methods: 'any',
      answer({ query }) {
        const { status, body } = healthResponse(checks, query, view);
        return text(status, body);
      },
    },
    {
      path: `${path}/`,
      methods: 'any',
      answer(request) {
        const answer = healthCheckResponse(checks, request.path.slice(path.length + 1));
        return answer === undefined ? text(404, '404: Page Not Found') : text(answer.status, answer.body);
      },
    },
  ];
}

export function kubeletRoutes(
  view: KubeletView,
  metrics: MetricRegistry,
  /** Additional metrics pages below /metrics, by path. */
  pages: Readonly<Record<string, MetricRegistry>> = {},
): readonly Route[] {
  return [
    { path: '/pods', methods: ['GET'], answer: async () => json(podList(await view.pods())) },
    {
      path: '/runningpods/',
      methods: ['GET'],
      answer: async (_request, signal) => json(podList((await view.runningPods(signal)).map(asPod))),
    },
    metricsRoute('/metrics', metrics),
    ...Object.entries(pages).map(([name, page]) => metricsRoute(`/metrics/${name}`, page)),
    {
      path: '/debug/flight',
      methods: ['GET'],
      answer: ({ query }) => json(view.flights(query.get('pod') ?? undefined)),
    },
  ];
}

function metricsRoute(path: string, metrics: MetricRegistry): Route {
  return {
    path,
    methods: 'any',
    answer: async (_request, signal) => ({
      status: 200,
      contentType: metricsContentType,
      body: await metrics.expose(signal),
    }),
  };
}

function podList(items: readonly unknown[]) {
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
}

/** A Pod object for a pod known only from the runtime, with the fields that the runtime reports. */
function asPod({ uid, name, namespace, containers }: RuntimePod) {
  return {
    metadata: { name, namespace, uid },
    spec: { containers: containers.map((container) => ({ name: container.name, image: container.image })) },
    status: {},
  };
}

/** Resource usage of the node and its pods; all methods are read-only. */
export interface StatsView {
  summary(detail: 'all' | 'cpu-and-memory', signal: AbortSignal): Promise<object>;
  /** Text of the resource metrics page; it contains an error metric after a failed scrape. */
  resourceMetrics(signal: AbortSignal): Promise<string>;
  cadvisorMetrics(signal: AbortSignal): Promise<string>;
}

export function statsRoutes(view: StatsView): readonly Route[] {
  const page = (path: string, read: (signal: AbortSignal) => Promise<string>): Route => ({
    path,
    methods: 'any',
    answer: async (_request, signal) => ({
      status: 200,
      contentType: metricsContentType,
      body: await read(signal),
    }),
  });
  const summary = async ({ query }: Request, signal: AbortSignal) => {
    const isShort = ['1', 't', 'true'].includes(query.get('only_cpu_and_memory')?.toLowerCase() ?? '');
    return json(await view.summary(isShort ? 'cpu-and-memory' : 'all', signal));
  };
  return [
    { path: '/stats/summary', methods: ['GET', 'POST'], answer: summary },
    page('/metrics/resource', (signal) => view.resourceMetrics(signal)),
    page('/metrics/cadvisor', (signal) => view.cadvisorMetrics(signal)),
  ];
}
