import type { MetricRegistry } from '../../lib/index.ts';

/** Observes the duration of DRA claim operations. Never throws. */
export interface DraObserver {
  operation(name: 'PrepareResources' | 'UnprepareResources', outcome: 'done' | 'failed', ms: number): void;
  /** Observes a driver call; `code` is the gRPC status code in the API's spelling. */
  called(driver: string, method: string, code: string, ms: number): void;
}

const least = 0.1;
const most = 40;
const count = 15;
/** Creates exponential histogram buckets. */
const buckets = Array.from({ length: count }, (_, at) => least * (most / least) ** (at / (count - 1)));

/** The value of the driver label under which the claims of all drivers are counted. */
const anyDriver = '<any>';

/**
 * Registers the metrics of DRA claims; call once per registry. `inUse` returns the drivers of each
 * prepared claim.
 */
export function draMetrics(
  registry: MetricRegistry,
  inUse: () => readonly (readonly string[])[],
): DraObserver {
  const operations = registry.histogram({
    name: 'dra_operations_duration_seconds',
    help: 'Duration of preparing or unpreparing all claims of a pod.',
    labels: ['operation_name', 'is_error'],
    buckets,
  });
  const calls = registry.histogram({
    name: 'dra_grpc_operations_duration_seconds',
    help: 'Duration of DRA driver calls by driver, method and status.',
    labels: ['driver_name', 'method_name', 'grpc_status_code'],
    buckets,
  });
  registry.collect(async () => [
    {
      name: 'dra_resource_claims_in_use',
      help: 'Prepared claims on this node by driver; <any> counts each claim once.',
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
