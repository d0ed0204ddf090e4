import type { MetricRegistry } from '../../lib/index.ts';
import type { CallSeen } from './calls.ts';

const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** In place of a status where there was no answer. */
const noAnswer = '<error>';

/** Counts the requests to an API server. Make one for a registry; the names are those dashboards know. */
export function callMetrics(registry: MetricRegistry): (seen: CallSeen) => void {
  const requests = registry.counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by the status of the answer, the method and the host.',
    labels: ['code', 'method', 'host'],
  });
  const durations = registry.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'How long the API server took to answer, by method and host; watches are left out.',
    labels: ['verb', 'host'],
    buckets,
  });
  return ({ verb, method, host, status, durationMs }) => {
    requests.with({ code: String(status ?? noAnswer), method, host }).inc();
    if (verb !== 'watch') durations.with({ verb: method, host }).observe(durationMs / 1_000);
  };
}
