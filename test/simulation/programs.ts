import type { ContainerConfig } from '../../src/cri/index.ts';
import type { ContainerScript, ExecAnswer } from '../simulator/index.ts';
import type { Behaviour, HookSketch, ProbeSketch } from './sketch.ts';

const earlyMs = 200;

/** The behaviour of a container's program, parsed from the command that `manifestText` writes. */
export function scriptOf(config: ContainerConfig): ContainerScript | undefined {
  const [program, text] = config.command;
  if (program !== 'app' || text === undefined) return undefined;
  const { runMs, exitCode, onTerm, failsBefore = 0, failsWith = 1 } = JSON.parse(text) as Behaviour;
  const attempt = config.metadata?.attempt ?? 0;
  const script: ContainerScript = {
    onTerm: typeof onTerm === 'number' ? { afterMs: onTerm, exitCode: 0 } : (onTerm ?? 'die'),
    exec: commandsOf(attempt),
  };
  if (attempt < failsBefore) return { ...script, runMs: earlyMs, exitCode: failsWith };
  return runMs === undefined ? script : { ...script, runMs, exitCode: exitCode ?? 0 };
}

/** The responses of one container instance to exec hooks and probes. */
function commandsOf(attempt: number): NonNullable<ContainerScript['exec']> {
  const requests = new Map<string, number>();
  return ([program, which = '', text = '']) => {
    if (program === 'hook') return hookAnswer(JSON.parse(text) as HookSketch);
    if (program !== 'probe') return undefined;
    const time = (requests.get(which) ?? 0) + 1;
    requests.set(which, time);
    const probe = JSON.parse(text) as ProbeSketch;
    const { is, afterMs } = probeAnswer(probe, attempt, time);
    return { afterMs, exitCode: is === 'success' ? 0 : 1 };
  };
}

function hookAnswer(hook: HookSketch): ExecAnswer {
  if (hook.kind === 'exec') return { afterMs: hook.takesMs, exitCode: hook.exitCode };
  return { hangs: true };
}

const promptMs = 5;
/** A delay longer than any probe timeout. */
const lateMs = 1_500;

/** The response of a container to its n-th probe request. */
export function probeAnswer(
  { failsFrom, failsTo, untilAttempt, badly }: ProbeSketch,
  attempt: number,
  time: number,
): { readonly is: 'success' | 'failure'; readonly afterMs: number } {
  const isWell = attempt >= untilAttempt || time < failsFrom || time > failsTo;
  if (isWell) return { is: 'success', afterMs: promptMs };
  return badly === 'late' ? { is: 'success', afterMs: lateMs } : { is: 'failure', afterMs: promptMs };
}
