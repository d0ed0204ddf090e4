import { type Clock, exponentialBuckets, type MetricRegistry } from '../lib/index.ts';

/** Which of the two servers of the kubelet is counted. */
export type ServerType = 'readwrite' | 'readonly';

const labels = ['method', 'path', 'server_type', 'long_running'] as const;
type Labels = Readonly<Record<(typeof labels)[number], string>>;

const methods = new Set(['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'CONNECT']);
/** Nobody may make up series by making up paths: all others are one. */
const roots = new Set([
  ...[
    'healthz',
    'livez',
    'readyz',
    'pods',
    'runningpods',
    'stats',
    'metrics',
    'logs',
    'containerLogs',
    'configz',
  ],
  ...['run', 'exec', 'attach', 'portForward', 'checkpoint', 'debug', 'pprof', 'statusz', 'flagz'],
  ...['cadvisor', 'probes', 'resource', 'slis'].map((page) => `metrics/${page}`),
]);
const longRunning = new Set(['exec', 'attach', 'portForward', 'debug']);

/** What both servers count of their requests. One for all of them, as each metric is registered once. */
export class HttpMetricFamilies {
  readonly #clock: Clock;
  readonly #requests;
  readonly #inflight;
  readonly #durations;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    this.#requests = registry.counter({
      name: 'kubelet_http_requests_total',
      help: 'Requests that reached a server of the kubelet.',
      labels,
    });
    this.#inflight = registry.gauge({
      name: 'kubelet_http_inflight_requests',
      help: 'Requests that are being answered now, streams included.',
      labels,
    });
    this.#durations = registry.histogram({
      name: 'kubelet_http_requests_duration_seconds',
      help: 'How many seconds requests took to their end.',
      labels,
      buckets: exponentialBuckets(0.005, 2.5, 10),
    });
  }

  of(serverType: ServerType): HttpMetrics {
    return { begin: (method, path) => this.#begin(labelsOf(method, path, serverType)) };
  }

  #begin(series: Labels): () => void {
    const startMs = this.#clock.monotonicMs();
    this.#requests.with(series).inc();
    const inflight = this.#inflight.with(series);
    inflight.inc();
    return () => {
      inflight.dec();
      this.#durations.with(series).observe((this.#clock.monotonicMs() - startMs) / 1_000);
    };
  }
}

/** What one server tells of its requests. */
export interface HttpMetrics {
  /** What it answers is to be called once, at the end of the request. */
  begin(method: string, path: string): () => void;
}

function labelsOf(method: string, path: string, serverType: ServerType): Labels {
  const [first = '', second] = path.replace(/^\//, '').split('/', 2);
  const root = first === 'metrics' && second !== undefined ? `${first}/${second}` : first;
  const known = roots.has(root) ? root : 'other';
  return {
    method: methods.has(method) ? method : 'other',
    path: known,
    server_type: serverType,
    long_running: String(longRunning.has(known)),
  };
}
