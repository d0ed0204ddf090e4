import type { MetricRegistry } from '../../lib/index.ts';

/** Told how long claims take. Never throws. */
export interface DraObserver {
  operation(name: 'PrepareResources' | 'UnprepareResources', outcome: 'done' | 'failed', ms: number): void;
  /** A call to a driver; the code is as the API spells it. */
  called(driver: string, method: string, code: string, ms: number): void;
}

const least = 0.1;
const most = 40;
const count = 15;
/** Each larger than the one before by the same factor. */
const buckets = Array.from({ length: count }, (_, at) => least * (most / least) ** (at / (count - 1)));

/** Under which all claims are counted, whoever their drivers are. */
const anyDriver = '<any>';

/** Make one for a registry; the names are those dashboards know. `inUse` has the drivers of each claim that is prepared. */
export function draMetrics(
  registry: MetricRegistry,
  inUse: () => readonly (readonly string[])[],
): DraObserver {
  const operations = registry.histogram({
    name: 'dra_operations_duration_seconds',
    help: 'How long it took to prepare or to take back all that a pod claims.',
    labels: ['operation_name', 'is_error'],
    buckets,
  });
  const calls = registry.histogram({
    name: 'dra_grpc_operations_duration_seconds',
    help: 'How long drivers of resource claims took to answer, by driver, method and status.',
    labels: ['driver_name', 'method_name', 'grpc_status_code'],
    buckets,
  });
  registry.collect(async () => [
    {
      name: 'dra_resource_claims_in_use',
      help: 'Claims that are prepared on this node, by driver; <any> counts each once.',
      type: 'gauge',
      samples: Array.from(countByDriver(inUse()), ([driver, value]) => ({
        labels: { driver_name: driver },
        value,
      })),
    },
  ]);
  return {
    operation: (name, outcome, ms) =>
      operations.with({ operation_name: name, is_error: String(outcome === 'failed') }).observe(ms / 1_000),
    called: (driver, method, code, ms) =>
      calls.with({ driver_name: driver, method_name: method, grpc_status_code: code }).observe(ms / 1_000),
  };
}

function countByDriver(claims: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const counts = new Map([[anyDriver, claims.length]]);
  for (const driver of claims.flat()) counts.set(driver, (counts.get(driver) ?? 0) + 1);
  return counts;
}
