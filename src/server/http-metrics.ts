import { type Clock, exponentialBuckets, type MetricRegistry } from '../lib/index.ts';

/** Which kubelet server the metrics count: the authenticated or the read-only one. */
export type ServerType = 'readwrite' | 'readonly';

const labels = ['method', 'path', 'server_type', 'long_running'] as const;
type Labels = Readonly<Record<(typeof labels)[number], string>>;

const methods = new Set(['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'CONNECT']);
/**
 * First path segments with separate series; all other paths share one series, so that clients
 * cannot create series.
 */
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

/** Request metrics shared by both servers, because each metric can be registered only once. */
export class HttpMetricFamilies {
  readonly #clock: Clock;
  readonly #requests;
  readonly #inflight;
  readonly #durations;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    this.#requests = registry.counter({
      name: 'kubelet_http_requests_total',
      help: 'Requests to the servers of the kubelet.',
      labels,
    });
    this.#inflight = registry.gauge({
      name: 'kubelet_http_inflight_requests',
      help: 'Requests in flight, including streams.',
      labels,
    });
    this.#durations = registry.histogram({
      name: 'kubelet_http_requests_duration_seconds',
      help: 'Duration of requests in seconds.',
      labels,
      buckets: exponentialBuckets(0.005, 2.5, 10),
    });
  }

  of(serverType: ServerType): HttpMetrics {
    return { begin: (method, path) => this.#start(labelsOf(method, path, serverType)) };
  }

  #start(series: Labels): () => void {
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

/** Counts the requests of one server. */
export interface HttpMetrics {
  /** Counts a request as started; the returned function is called once at its end. */
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
