import type { ExecSyncRequest } from '../../../src/cri/index.ts';
import { containerOf } from '../sketch.ts';
import type { Rule, RuleScene } from './scene.ts';

/** A preStop hook of a container runs at most once, also across kubelet restarts. */
export function preStopOnce({ report, ledger }: RuleScene): Rule {
  return {
    calling(method, request) {
      if (method !== 'execSync') return;
      const { containerId, cmd } = request as ExecSyncRequest;
      const instance = ledger.find(containerId);
      if (instance === undefined || cmd[0] !== 'hook' || cmd[1] !== 'pre-stop') return;
      const { name, attempt, podUid, preStops } = instance;
      if (preStops > 1)
        report('a preStop hook runs once', `${name} #${attempt} of ${podUid}: ${preStops} times`);
    },
  };
}

/** A container that keeps running has run its postStart hook, whichever kubelet started it. */
export function postStartRuns({ report, desk, ledger }: RuleScene): Rule {
  return {
    settled() {
      for (const { podUid, name, attempt, startedMs, ended, postStarts } of ledger.all()) {
        if (startedMs === undefined || ended !== undefined || postStarts > 0) continue;
        const hook = containerOf(desk.known(podUid), name)?.postStart;
        if (hook === undefined || hook.kind === 'sleep') continue;
        report('every instance has its postStart hook', `${name} #${attempt} of ${podUid} runs without`);
      }
    },
  };
}

/** An ephemeral container runs once and is never restarted. */
export function ephemeralOnce({ report, desk, ledger, isDamaged }: RuleScene): Rule {
  return {
    entry(entry) {
      if (entry.kind !== 'container-started' || isDamaged(entry.podUid)) return;
      const { podUid, name } = entry;
      if (!desk.known(podUid)?.ephemeral?.some((each) => each.name === name)) return;
      const times = ledger.ofPod(podUid).filter((each) => each.name === name && each.startedMs !== undefined);
      if (times.length > 1) report('an ephemeral container starts once', `${name} of ${podUid}`);
    },
  };
}
