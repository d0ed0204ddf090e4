import { MetricRegistry, metricsContentType } from '../lib/index.ts';
import type { HealthCheck } from './health.ts';
import { type Request, type Response, type Route, text } from './router.ts';

/** How the health checks went, for whoever measures how often a node is well: a page of metrics of its own. */
export class HealthSlis {
  readonly #onError: (error: unknown) => void;
  #page: SliPage;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#page = sliPage(onError);
  }

  /** The same checks, each look at one of them counted. */
  observed(checks: readonly HealthCheck[], type: 'healthz' | 'livez' | 'readyz'): readonly HealthCheck[] {
    return checks.map((check) => ({
      name: check.name,
      problem: () => {
        const problem = check.problem();
        this.#page.note(check.name, type, problem === undefined ? 'success' : 'error');
        return problem;
      },
    }));
  }

  /** Who may change things may also set all of it back. */
  get route(): Route {
    return {
      path: '/metrics/slis',
      methods: 'any',
      answer: (request, signal) => this.#answer(request, signal),
    };
  }

  async #answer({ method }: Request, signal: AbortSignal): Promise<Response> {
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
    help: 'Whether a health check is well: 1 when it is, 0 when it is not.',
    labels: ['name', 'type'],
  });
  const total = registry.counter({
    name: 'kubernetes_healthchecks_total',
    help: 'How often a health check was asked, by what it said.',
    labels: ['name', 'type', 'status'],
  });
  return {
    registry,
    note(name: string, type: string, status: 'success' | 'error') {
      now.with({ name, type }).set(status === 'success' ? 1 : 0);
      total.with({ name, type, status }).inc();
    },
  };
}
