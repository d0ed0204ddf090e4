import type { Clock } from '../lib/index.ts';
import { containerFieldPath, type Pod } from '../pods/index.ts';
import type { ContainerLogRequest, LogTime, OpenedLog } from '../runtime/index.ts';
import { readLogQuery } from './log-query.ts';
import { type Request, type Response, type Route, text } from './router.ts';

/** Where the server has logs from. */
export interface LogsView {
  readonly clock: Pick<Clock, 'now'>;
  /** The pods of this node with their status. */
  pods(): readonly Pod[];
  open(request: ContainerLogRequest, signal: AbortSignal): Promise<OpenedLog>;
  readonly parseTime: (text: string) => LogTime | undefined;
  /** Whether one of the two streams may be asked for alone. */
  readonly splitStreams: 'on' | 'off';
}

export function containerLogsRoute(view: LogsView): Route {
  return {
    path: '/containerLogs/{namespace}/{pod}/{container}',
    methods: ['GET'],
    answer: (request, signal) => answerLogs(view, request, signal),
  };
}

async function answerLogs(
  view: LogsView,
  { params, query }: Request,
  signal: AbortSignal,
): Promise<Response> {
  const { namespace = '', pod: name = '', container = '' } = params;
  const { parseTime, splitStreams } = view;
  const read = readLogQuery(query, { now: view.clock.now(), parseTime, splitStreams });
  if (read.kind === 'refused') return text(read.status, read.message);
  const pod = view.pods().find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  if (pod === undefined) return text(404, `pod ${JSON.stringify(name)} does not exist`);
  if (containerFieldPath(pod, container) === undefined)
    return text(404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
  const log = await view.open({ pod, container, ...read.options }, signal);
  if (log.kind === 'refused') return text(400, log.message);
  return { status: 200, contentType: 'text/plain; charset=utf-8', body: log.chunks };
}
