import type { Clock } from '../lib/index.ts';
import type { RuntimeProblems } from '../runtime/index.ts';
import type { HealthCheck } from '../server/index.ts';

/** What health is read from; each is a look that changes nothing. */
export interface HealthSource {
  readonly clock: Clock;
  readonly syncFrequencyMs: number;
  readonly loop: { readonly enteredMs: number | undefined };
  readonly sources: { readiness(): readonly { readonly source: string; readonly ready: boolean }[] };
  /** As it is now, without any patience. */
  readonly runtime: { readiness(): RuntimeProblems };
  readonly pleg: { problem(): string | undefined };
  readonly background: { problem(): string | undefined };
}

const slowLoopMs = 5 * 60_000;
const ping: HealthCheck = { name: 'ping', problem: () => undefined };

/** Whether the process should live on: it answers, and its loop comes round. A runtime that is away for long shows too. */
export function livenessChecks(health: HealthSource): readonly HealthCheck[] {
  return [ping, syncLoopCheck(health)];
}

/** Whether pods can be worked on at this moment. */
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

/** One that has not begun yet gets as long to begin as one that runs has to come round. */
function syncLoopCheck({ clock, loop, syncFrequencyMs }: HealthSource): HealthCheck {
  const limitMs = Math.max(2 * syncFrequencyMs, slowLoopMs);
  const madeMs = clock.monotonicMs();
  return {
    name: 'syncloop',
    problem() {
      const { enteredMs = madeMs } = loop;
      if (clock.monotonicMs() - enteredMs <= limitMs) return undefined;
      return 'sync Loop took longer than expected';
    },
  };
}

function joined(problems: readonly string[]): string | undefined {
  return problems.length === 0 ? undefined : problems.join('; ');
}
