import type { MetricRegistry } from '../../lib/index.ts';

/** Told what became of hooks, to be counted. Never throws. */
export interface HookObserver {
  /** A hook that asked with TLS got its answer without. */
  fellBack(): void;
  /** A sleep was given up before its time. */
  sleepCut(): void;
}

export const unobservedHooks: HookObserver = { fellBack() {}, sleepCut() {} };

/** Make one for a registry; the names are those dashboards know. */
export function hookMetrics(registry: MetricRegistry): HookObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const fallbacks = counter(
    'kubelet_lifecycle_handler_http_fallbacks_total',
    'Hooks that asked with TLS and got their answer without.',
  );
  const sleeps = counter(
    'kubelet_sleep_action_terminated_early_total',
    'Sleep hooks that were given up before their time.',
  );
  return { fellBack: () => fallbacks.inc(), sleepCut: () => sleeps.inc() };
}
