import type { Clock } from '../lib/index.ts';
import { containerFieldPath, type Pod } from '../pods/index.ts';
import type { ContainerLogRequest, LogStream, LogTime, OpenedLog } from '../runtime/index.ts';
import { type Request, type Response, type Route, text } from './router.ts';

/** Access to the logs of containers. */
export interface LogsView {
  readonly clock: Pick<Clock, 'now'>;
  /** The pods of this node with their current status. */
  pods(): readonly Pod[];
  open(request: ContainerLogRequest, signal: AbortSignal): Promise<OpenedLog>;
  readonly parseTime: (text: string) => LogTime | undefined;
  /** Whether log requests may select stdout or stderr. */
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

export interface LogQueryContext {
  /** Current time in milliseconds since 1970. */
  readonly now: number;
  readonly parseTime: (text: string) => LogTime | undefined;
  /** Whether log requests may select stdout or stderr. */
  readonly splitStreams: 'on' | 'off';
}

export type LogOptions = Omit<ContainerLogRequest, 'pod' | 'container'>;

export type LogQuery =
  | { readonly kind: 'options'; readonly options: LogOptions }
  | { readonly kind: 'refused'; readonly status: 400 | 422; readonly message: string };

/** Parses the options of a log request. All problems are reported in one response. */
export function readLogQuery(query: URLSearchParams, context: LogQueryContext): LogQuery {
  const reader = new QueryReader(query);
  const options = reader.options(context);
  if (reader.unreadable.length > 0) return refused(400, 'Unable to decode query', reader.unreadable);
  if (reader.invalid.length > 0) return refused(422, 'Invalid request', reader.invalid);
  const stream = query.get('stream') ?? 'All';
  if (stream !== 'All' && context.splitStreams === 'off') {
    const message = `unable to return the given log stream: ${JSON.stringify(stream)}. Please enable PodLogsQuerySplitStreams feature gate in kubelet`;
    return { kind: 'refused', status: 400, message };
  }
  return { kind: 'options', options };
}

function refused(status: 400 | 422, what: string, why: readonly string[]): LogQuery {
  return { kind: 'refused', status, message: JSON.stringify({ message: `${what}: ${why.join('; ')}` }) };
}

const streams: Readonly<Record<string, LogStream | 'all'>> = {
  All: 'all',
  Stdout: 'stdout',
  Stderr: 'stderr',
};

class QueryReader {
  readonly unreadable: string[] = [];
  readonly invalid: string[] = [];
  readonly #query: URLSearchParams;

  constructor(query: URLSearchParams) {
    this.#query = query;
  }

  options({ now, parseTime }: LogQueryContext): LogOptions {
    const tailLines = this.#tailLines();
    const stream = this.#stream(tailLines);
    const since = this.#since(now, parseTime);
    const limitBytes = this.#count('limitBytes', 1);
    return {
      follow: this.#flag('follow') ? 'until-ended' : 'no',
      instance: this.#instance(),
      tailLines,
      view: { since, limitBytes, stream, timestamps: this.#flag('timestamps') ? 'shown' : 'hidden' },
    };
  }

  /**
   * `instance` is an extension of kubeling, for clients that read the logs of all instances one
   * after another.
   */
  #instance(): LogOptions['instance'] {
    const id = this.#query.get('instance');
    if (id !== null) return { which: 'id', id };
    return { which: this.#flag('previous') ? 'previous' : 'newest' };
  }

  /** `tail` is the legacy name; `all` means all lines. */
  #tailLines(): number | undefined {
    const old = this.#query.get('tail') ?? '';
    if (old === 'all') return undefined;
    return this.#count(old === '' ? 'tailLines' : 'tail', 0);
  }

  #since(now: number, parseTime: LogQueryContext['parseTime']): LogTime | undefined {
    const seconds = this.#count('sinceSeconds', 1);
    const text = this.#query.get('sinceTime') ?? '';
    const time = text === '' ? undefined : parseTime(text);
    if (text !== '' && time === undefined)
      this.unreadable.push(`sinceTime must be a time as 2006-01-02T15:04:05Z: current value is "${text}"`);
    if (seconds !== undefined && text !== '')
      this.invalid.push('at most one of sinceTime or sinceSeconds may be given');
    return seconds === undefined ? time : before(now, seconds);
  }

  #stream(tailLines: number | undefined): LogStream | 'all' {
    const text = this.#query.get('stream') ?? 'All';
    const stream = Object.hasOwn(streams, text) ? streams[text] : undefined;
    if (stream === undefined) {
      this.invalid.push(
        `stream must be one of ${Object.keys(streams).join(', ')}: current value is "${text}"`,
      );
      return 'all';
    }
    if (stream !== 'all' && tailLines !== undefined)
      this.invalid.push('tailLines may not be given together with one stream');
    return stream;
  }

  #count(name: string, least: number): number | undefined {
    const text = this.#query.get(name) ?? '';
    if (text === '') return undefined;
    if (!/^[-+]?\d{1,19}$/.test(text)) {
      this.unreadable.push(`${name} must be a whole number: current value is "${text}"`);
      return undefined;
    }
    const value = Number(text);
    if (value < least) this.invalid.push(`${name} must be ${least} or more: current value is ${text}`);
    return value;
  }

  /**
   * Parses a boolean query option like the API server: a present option is true unless its value is
   * `0` or `false`.
   */
  #flag(name: string): boolean {
    const text = this.#query.get(name);
    return text !== null && text !== '0' && text.toLowerCase() !== 'false';
  }
}

function before(now: number, seconds: number): LogTime {
  const whole = Math.floor(now / 1_000);
  return { seconds: whole - seconds, nanos: Math.round((now - whole * 1_000) * 1_000_000) };
}
