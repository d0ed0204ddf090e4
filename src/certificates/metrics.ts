import type { Clock, MetricRegistry } from '../lib/index.ts';
import type { KeyPair } from '../protocols/x509/index.ts';

/** Records certificate rotations in metrics. Never throws. */
export interface RotationObserver {
  renewFailed(): void;
  /**
   * `lifetimeMs` is how long the previous certificate was in use; undefined for the first
   * certificate.
   */
  rotated(lifetimeMs: number | undefined): void;
}

export const noObserver: RotationObserver = { renewFailed: () => {}, rotated: () => {} };

const minute = 60;
const day = 86_400;
const rotationBuckets = [
  minute,
  60 * minute,
  240 * minute,
  day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
  1440 * day,
];

/** Registers the client certificate metrics, once per registry and also without rotation. */
export function clientCertificateMetrics(registry: MetricRegistry): RotationObserver {
  const errors = registry
    .counter({
      name: 'kubelet_certificate_manager_client_expiration_renew_errors',
      help: 'Failed renewals of the client certificate.',
    })
    .with({});
  return { renewFailed: () => errors.inc(), rotated: () => {} };
}

export function serverCertificateMetrics(registry: MetricRegistry): RotationObserver {
  const errors = registry
    .counter({
      name: 'kubelet_server_expiration_renew_errors',
      help: 'Failed renewals of the serving certificate.',
    })
    .with({});
  const lifetime = registry
    .histogram({
      name: 'kubelet_certificate_manager_server_rotation_seconds',
      help: 'How long serving certificates were in use before they were replaced.',
      buckets: rotationBuckets,
    })
    .with({});
  return {
    renewFailed: () => errors.inc(),
    rotated: (lifetimeMs) => void (lifetimeMs !== undefined && lifetime.observe(lifetimeMs / 1_000)),
  };
}

/**
 * Exports the remaining lifetime of the current certificate: negative after expiry, infinite
 * without a certificate.
 */
export function exposeTimeToLive(
  registry: MetricRegistry,
  of: 'client' | 'server',
  deps: { readonly clock: Clock; readonly held: () => KeyPair | undefined },
): Disposable {
  const name = `kubelet_certificate_manager_${of}_ttl_seconds`;
  const help = `Seconds until the ${of === 'client' ? 'client' : 'serving'} certificate expires.`;
  return registry.collect(() => {
    const notAfterMs = deps.held()?.leaf.notAfterMs;
    const value =
      notAfterMs === undefined
        ? Number.POSITIVE_INFINITY
        : Math.trunc((notAfterMs - deps.clock.now()) / 1_000);
    return [{ name, help, type: 'gauge', samples: [{ value }] }];
  });
}
