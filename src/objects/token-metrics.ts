import type { MetricRegistry } from '../lib/index.ts';

/** Called after each token request. Never throws. */
export interface TokenObserver {
  answered(result: 'issued' | 'failed'): void;
  /** The number of required tokens whose last request failed. */
  waiting(count: number): void;
}

export function tokenMetrics(registry: MetricRegistry): TokenObserver {
  const requests = registry.counter({
    name: 'kubeling_token_requests_total',
    help: 'Service-account token requests by result.',
    labels: ['result'],
  });
  const overdue = registry.gauge({
    name: 'kubeling_tokens_overdue',
    help: 'Service-account tokens whose last request failed.',
  });
  overdue.with({}).set(0);
  return {
    answered: (result) => requests.with({ result }).inc(),
    waiting: (count) => overdue.with({}).set(count),
  };
}
