import { metricsContentType } from '../lib/index.ts';
import { json, type Request, type Route } from './router.ts';

/** What the node and its pods have used; each is a look that changes nothing. */
export interface StatsView {
  summary(wish: 'all' | 'cpu-and-memory', signal: AbortSignal): Promise<object>;
  /** The text of a page of metrics. One whose look failed says so. */
  resourceMetrics(signal: AbortSignal): Promise<string>;
  cadvisorMetrics(signal: AbortSignal): Promise<string>;
}

export function statsRoutes(view: StatsView): readonly Route[] {
  const page = (path: string, look: (signal: AbortSignal) => Promise<string>): Route => ({
    path,
    methods: 'any',
    answer: async (_request, signal) => ({
      status: 200,
      contentType: metricsContentType,
      body: await look(signal),
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
