import { type ContainerSketch, isSidecar } from '../sketch.ts';
import type { Instance } from './ledger.ts';
import type { Rule, RuleScene } from './scene.ts';

/**
 * In every sandbox an init container starts only when the previous ones have completed, and a
 * regular container only when all have.
 */
export function initOrder({ report, desk, ledger }: RuleScene): Rule {
  return {
    entry(entry) {
      if (entry.kind !== 'container-started') return;
      const { podUid, sandboxId, name, attempt } = entry;
      const sketch = desk.known(podUid);
      if (sketch === undefined || sketch.init.length === 0) return;
      if (sketch.ephemeral?.some((each) => each.name === name)) return;
      const place = sketch.init.findIndex((each) => each.name === name);
      const before = place < 0 ? sketch.init : sketch.init.slice(0, place);
      const past = ledger.inSandbox(podUid, sandboxId);
      const missing = before.filter((each) => !isDone(each, past));
      for (const { name: other } of missing) {
        const what = `${name} #${attempt} of ${podUid} started before ${other} was done`;
        report('init containers go in order', what);
      }
    },
  };
}

function isDone(container: ContainerSketch, past: readonly Instance[]): boolean {
  const own = past.filter((each) => each.name === container.name && each.startedMs !== undefined);
  if (!isSidecar(container)) return own.some(({ ended }) => ended?.exitCode === 0 && ended.cause !== 'oom');
  const isProbed = container.probes?.startup !== undefined;
  return own.some(({ probes }) => !isProbed || probes.startup.succeeded);
}
