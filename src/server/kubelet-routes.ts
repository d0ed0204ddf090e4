import type { MetricRegistry } from '../lib/index.ts';
import { metricsContentType } from '../lib/index.ts';
import type { Pod, RuntimePod } from '../pods/index.ts';
import { answerCheck, answerHealth, type HealthCheck } from './health.ts';
import { json, type Route, text } from './router.ts';

/** What the server shows of the kubelet; each is a read that changes nothing. */
export interface KubeletView {
  /** The pods this node should run, static ones with their live status. */
  pods(): readonly Pod[];
  runningPods(signal: AbortSignal): Promise<readonly RuntimePod[]>;
  /** The stories of the pods that fit the key, or of all. */
  flights(key: string | undefined): unknown;
}

export function healthRoutes(checks: readonly HealthCheck[]): readonly Route[] {
  return [
    {
      path: '/healthz',
      methods: 'any',
      answer({ query }) {
        const { status, body } = answerHealth(checks, query);
        return text(status, body);
      },
    },
    {
      path: '/healthz/',
      methods: 'any',
      answer({ path }) {
        const answer = answerCheck(checks, path.slice('/healthz/'.length));
        return answer === undefined ? text(404, '404: Page Not Found') : text(answer.status, answer.body);
      },
    },
  ];
}

export function kubeletRoutes(view: KubeletView, metrics: MetricRegistry): readonly Route[] {
  return [
    { path: '/pods', methods: ['GET'], answer: () => json(podList(view.pods())) },
    {
      path: '/runningpods/',
      methods: ['GET'],
      answer: async (_request, signal) => json(podList((await view.runningPods(signal)).map(asPod))),
    },
    {
      path: '/metrics',
      methods: 'any',
      answer: async (_request, signal) => ({
        status: 200,
        contentType: metricsContentType,
        body: await metrics.expose(signal),
      }),
    },
    {
      path: '/debug/flight',
      methods: ['GET'],
      answer: ({ query }) => json(view.flights(query.get('pod') ?? undefined)),
    },
  ];
}

function podList(items: readonly unknown[]) {
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
}

/** A pod as far as the runtime alone knows it. */
function asPod({ uid, name, namespace, containers }: RuntimePod) {
  return {
    metadata: { name, namespace, uid },
    spec: { containers: containers.map((container) => ({ name: container.name, image: container.image })) },
    status: {},
  };
}
