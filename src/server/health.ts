import { MetricRegistry, metricsContentType } from '../lib/index.ts';
import { type Request, type Response, type Route, text } from './router.ts';

/** A health check. Returns a description of the problem, or undefined when the check passes. */
export interface HealthCheck {
  readonly name: string;
  problem(): string | undefined;
}

export interface HealthResponse {
  readonly status: 200 | 500;
  readonly body: string;
}

export interface HealthView {
  /** Name of the endpoint, in the last line of the response. */
  readonly name: 'healthz' | 'livez' | 'readyz';
  /**
   * Whether the response contains reasons. /healthz withholds them: they are in the log, and on the
   * path of the single check.
   */
  readonly reasons: 'shown' | 'withheld';
}

const healthz: HealthView = { name: 'healthz', reasons: 'withheld' };

/** Runs all health checks and returns the response. */
export function healthResponse(
  checks: readonly HealthCheck[],
  query: URLSearchParams,
  { name, reasons }: HealthView = healthz,
): HealthResponse {
  const excluded = new Set(query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const check of checks) {
    if (excluded.delete(check.name)) {
      lines.push(`[+]${check.name} excluded: ok`);
      continue;
    }
    const problem = check.problem();
    failed ||= problem !== undefined;
    const why = reasons === 'shown' ? problem : 'reason withheld';
    lines.push(problem === undefined ? `[+]${check.name} ok` : `[-]${check.name} failed: ${why}`);
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((each) => JSON.stringify(each)).join(',');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) return { status: 500, body: `${lines.join('\n')}\n${name} check failed\n` };
  return { status: 200, body: query.has('verbose') ? `${lines.join('\n')}\n${name} check passed\n` : 'ok' };
}

/** Runs one health check by name; returns undefined when no such check exists. */
export function healthCheckResponse(
  checks: readonly HealthCheck[],
  name: string,
): HealthResponse | undefined {
  const check = checks.find((candidate) => candidate.name === name);
  if (check === undefined) return undefined;
  const problem = check.problem();
  return problem === undefined
    ? { status: 200, body: 'ok' }
    : { status: 500, body: `internal server error: ${problem}\n` };
}

/**
 * Counts the results of health checks, served as a separate metrics page for service level
 * indicators.
 */
export class HealthSlis {
  readonly #onError: (error: unknown) => void;
  #page: SliPage;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#page = sliPage(onError);
  }

  /** Wraps the checks so that each of their results is counted. */
  observed(checks: readonly HealthCheck[], type: 'healthz' | 'livez' | 'readyz'): readonly HealthCheck[] {
    return checks.map((check) => ({
      name: check.name,
      problem: () => {
        const problem = check.problem();
        this.#page.record(check.name, type, problem === undefined ? 'success' : 'error');
        return problem;
      },
    }));
  }

  /** The metrics route; clients with write access may also reset the counters. */
  get route(): Route {
    return {
      path: '/metrics/slis',
      methods: 'any',
      answer: (request, signal) => this.#respond(request, signal),
    };
  }

  async #respond({ method }: Request, signal: AbortSignal): Promise<Response> {
    if (method === 'DELETE') {
      this.#page = sliPage(this.#onError);
      return text(200, 'metrics reset\n');
    }
    return { status: 200, contentType: metricsContentType, body: await this.#page.registry.expose(signal) };
  }
}

type SliPage = ReturnType<typeof sliPage>;

function sliPage(onError: (error: unknown) => void) {
  const registry = new MetricRegistry({ onError });
  const now = registry.gauge({
    name: 'kubernetes_healthcheck',
    help: 'Whether a health check passes: 1 or 0.',
    labels: ['name', 'type'],
  });
  const total = registry.counter({
    name: 'kubernetes_healthchecks_total',
    help: 'Number of runs of a health check, by result.',
    labels: ['name', 'type', 'status'],
  });
  return {
    registry,
    record(name: string, type: string, status: 'success' | 'error') {
      now.with({ name, type }).set(status === 'success' ? 1 : 0);
      total.with({ name, type, status }).inc();
    },
  };
}
