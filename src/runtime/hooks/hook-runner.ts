import type { Container, LifecycleHandler } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';

export interface HookTarget {
  readonly pod: Pod;
  /** As the pod's spec has it, or as much as the runtime remembers of it. */
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly containerId: string;
}

/**
 * Runs the hooks of containers. Rejects when the hook failed; the message may hold output of the container and is
 * kept out of events.
 */
export interface HookRunner {
  run(hook: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void>;
}

/** Takes every hook for done. */
export const noHooks: HookRunner = { run: async () => {} };
