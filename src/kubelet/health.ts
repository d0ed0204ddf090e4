import type { Clock } from '../lib/index.ts';
import type { RuntimeProblems } from '../runtime/index.ts';
import type { HealthCheck } from '../server/index.ts';

/** The parts of the kubelet whose state the health checks read; the checks change nothing. */
export interface HealthSource {
  readonly clock: Clock;
  readonly syncFrequencyMs: number;
  readonly loop: { readonly enteredMs: number | undefined };
  readonly sources: { readiness(): readonly { readonly source: string; readonly ready: boolean }[] };
  /**
   * The current problems of the runtime, reported immediately and not only after a grace period.
   */
  readonly runtime: { readiness(): RuntimeProblems };
  readonly pleg: { problem(): string | undefined };
  readonly background: { problem(): string | undefined };
}

const slowLoopMs = 5 * 60_000;
const ping: HealthCheck = { name: 'ping', problem: () => undefined };

/**
 * The checks of /livez: the process responds and its sync loop advances. The sync loop also stops
 * advancing when the runtime is unresponsive for long.
 */
export function livenessChecks(health: HealthSource): readonly HealthCheck[] {
  return [ping, syncLoopCheck(health)];
}

/** The checks of /readyz: whether pods can be synced now. */
export function readinessChecks(health: HealthSource): readonly HealthCheck[] {
  const { sources, runtime, pleg, background } = health;
  const unread = ({ source }: { readonly source: string }) => `the source ${source} has not been read yet`;
  return [
    ping,
    {
      name: 'sources',
      problem: () =>
        joined(
          sources
            .readiness()
            .filter(({ ready }) => !ready)
            .map(unread),
        ),
    },
    { name: 'runtime', problem: () => joined(runtime.readiness().runtime) },
    { name: 'network', problem: () => joined(runtime.readiness().network) },
    { name: 'pleg', problem: () => pleg.problem() },
    { name: 'background', problem: () => background.problem() },
    syncLoopCheck(health),
  ];
}

/**
 * Fails when the sync loop does not advance within a limit. Before its first iteration, the limit
 * counts from the start of the kubelet.
 */
function syncLoopCheck({ clock, loop, syncFrequencyMs }: HealthSource): HealthCheck {
  const limitMs = Math.max(2 * syncFrequencyMs, slowLoopMs);
  const createdMs = clock.monotonicMs();
  return {
    name: 'syncloop',
    problem() {
      const { enteredMs = createdMs } = loop;
      if (clock.monotonicMs() - enteredMs <= limitMs) return undefined;
      return 'sync Loop took longer than expected';
    },
  };
}

function joined(problems: readonly string[]): string | undefined {
  return problems.length === 0 ? undefined : problems.join('; ');
}
