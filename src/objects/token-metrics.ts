import type { MetricRegistry } from '../lib/index.ts';

/** Told of each request for a token. Never throws. */
export interface TokenObserver {
  answered(result: 'issued' | 'failed'): void;
  /** How many tokens are wanted and could not be got at the last try. */
  waiting(count: number): void;
}

export function tokenMetrics(registry: MetricRegistry): TokenObserver {
  const requests = registry.counter({
    name: 'kubeling_token_requests_total',
    help: 'Requests for service-account tokens, by result.',
    labels: ['result'],
  });
  const overdue = registry.gauge({
    name: 'kubeling_tokens_overdue',
    help: 'Service-account tokens that are wanted and could not be got at the last try.',
  });
  overdue.with({}).set(0);
  return {
    answered: (result) => requests.with({ result }).inc(),
    waiting: (count) => overdue.with({}).set(count),
  };
}
