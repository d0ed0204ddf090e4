import type { PodStatus } from '../../../src/kinds/index.ts';
import { servingOf } from '../sketch.ts';
import { statusOf } from './readiness.ts';
import type { Rule, RuleScene } from './scene.ts';

/** A probe result is only reported for the probed container instance. */
export function probeResultsStay({ report, desk, ledger }: RuleScene): Rule {
  const rule = 'a probe tells of the instance it asked';
  const check = (uid: string, status: PodStatus) => {
    const sketch = desk.known(uid);
    if (sketch === undefined) return;
    for (const { name, probes } of servingOf(sketch)) {
      const { ready, started, containerID = '' } = statusOf(status, name) ?? {};
      const instance = ledger.find(containerID.slice(containerID.indexOf('://') + 3));
      if (probes === undefined || instance === undefined) continue;
      if (ready === true && probes.readiness !== undefined && !instance.probes.readiness.succeeded)
        report(rule, `${name} #${instance.attempt} of ${uid} is ready without a successful readiness probe`);
      if (started === true && probes.startup !== undefined && !instance.probes.startup.succeeded)
        report(rule, `${name} #${instance.attempt} of ${uid} has started without a successful startup probe`);
    }
  };
  return {
    kubeletStarted({ kubelet }) {
      kubelet.state.statuses.onChange(({ uid, after }) => check(uid, after));
    },
  };
}
