import type { MetricRegistry } from '../../lib/index.ts';
import type { CallResult } from './calls.ts';

const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** The `status` label of requests without a response. */
const noAnswer = '<error>';

/**
 * Counts requests to an API server. Create it once per registry. The metric names are those that
 * existing dashboards use.
 */
export function callMetrics(registry: MetricRegistry): (result: CallResult) => void {
  const requests = registry.counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by response status, method and host.',
    labels: ['code', 'method', 'host'],
  });
  const durations = registry.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Response time of the API server, by method and host, without watches.',
    labels: ['verb', 'host'],
    buckets,
  });
  return ({ verb, method, host, status, durationMs }) => {
    requests.with({ code: String(status ?? noAnswer), method, host }).inc();
    if (verb !== 'watch') durations.with({ verb: method, host }).observe(durationMs / 1_000);
  };
}
