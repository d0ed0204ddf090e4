import type { PodUid } from '../../src/pods/index.ts';
import { settings } from './kubelet-life.ts';
import { type ContainerSketch, images, type PodSketch } from './manifests.ts';
import type { World } from './world.ts';

/** What becomes of a pod that is left alone. */
export type Outcome = 'running' | 'succeeded' | 'failed' | 'never-settles';

export function outcomeOf({ init, containers, restartPolicy, deadlineSeconds }: PodSketch): Outcome {
  if (deadlineSeconds !== undefined) return 'failed';
  const all = [...init, ...containers];
  if (all.some(({ image }) => image === images.missing)) return 'never-settles';
  const failing = init.some((one) => (restartPolicy === 'Never' && fails(one)) || alwaysFails(one));
  if (failing) return restartPolicy === 'Never' ? 'failed' : 'never-settles';
  const ends = containers.filter((one) => endsFor(one, restartPolicy));
  if (restartPolicy === 'Always') return ends.length === 0 ? 'running' : 'never-settles';
  if (restartPolicy === 'OnFailure' && ends.some(alwaysFails)) return 'never-settles';
  if (ends.length < containers.length) return 'running';
  return ends.some(fails) ? (restartPolicy === 'Never' ? 'failed' : 'succeeded') : 'succeeded';
}

function endsFor(one: ContainerSketch, restartPolicy: PodSketch['restartPolicy']): boolean {
  return one.runMs !== undefined || (restartPolicy === 'Never' && fails(one));
}

function alwaysFails({ runMs, exitCode = 0 }: ContainerSketch): boolean {
  return runMs !== undefined && exitCode !== 0;
}

function fails(one: ContainerSketch): boolean {
  return alwaysFails(one) || (one.failsBefore ?? 0) > 0;
}

const farMs = 10 * 60_000;
const phases = { running: 'Running', succeeded: 'Succeeded', failed: 'Failed' } as const;

/** What of a wanted pod is not yet as it should be; `disturbed` if its containers ended other than it says. */
export function unsettled(
  world: World,
  uid: string,
  sketch: PodSketch,
  fate: 'left-alone' | 'disturbed',
): readonly string[] {
  const kubelet = world.life?.kubelet;
  const outcome = outcomeOf(sketch);
  if (outcome === 'never-settles')
    return kubelet?.workers.activePod(uid as PodUid) === undefined ? [`${uid} has no worker`] : [];
  if (isFarFromDeadline(world, uid, sketch)) return [];
  const phase = kubelet?.statuses.getPodStatus(uid as PodUid)?.phase ?? 'unknown';
  const seen: Seen = {
    phase,
    running: world.runtime.runningContainers().flatMap((one) => (one.podUid === uid ? [one.name] : [])),
    sandboxes: world.runtime.sandboxes().filter((one) => one.podUid === uid && one.running).length,
  };
  const mayDiffer = fate === 'disturbed' && sketch.restartPolicy !== 'Always';
  const problems = mayDiffer ? unsound(seen) : unlike(seen, sketch, outcome);
  return problems.map((problem) => `${uid} of ${sketch.name} ${problem}`);
}

/** After the clock was set back a pod may have far more time than its manifest says. */
export function isFarFromDeadline(world: World, uid: string, { deadlineSeconds }: PodSketch): boolean {
  const startTime = world.life?.kubelet.statuses.getPodStatus(uid as PodUid)?.startTime;
  if (deadlineSeconds === undefined || startTime === undefined) return false;
  return Date.parse(startTime) + deadlineSeconds * 1_000 - world.clock.now() > farMs;
}

interface Seen {
  readonly phase: string;
  readonly running: readonly string[];
  readonly sandboxes: number;
}

function unlike(seen: Seen, sketch: PodSketch, outcome: keyof typeof phases): readonly string[] {
  const stays = ({ name }: ContainerSketch) => seen.running.filter((one) => one === name).length;
  const lasting = sketch.containers.filter((one) => !endsFor(one, sketch.restartPolicy));
  const expected = outcome === 'running' ? lasting : [];
  return [
    ...(seen.phase === phases[outcome] ? [] : [`is ${seen.phase}, not ${outcome}`]),
    ...expected.flatMap((one) => (stays(one) === 1 ? [] : [`has ${stays(one)} instances of ${one.name}`])),
    ...seen.running
      .filter((name) => expected.every((one) => one.name !== name))
      .map((name) => `runs ${name}`),
    ...(seen.sandboxes === Math.sign(expected.length) ? [] : [`has ${seen.sandboxes} sandboxes`]),
  ];
}

/** A pod that is not started again may have ended early, or begun anew where the runtime forgot it. */
function unsound({ phase, running, sandboxes }: Seen): readonly string[] {
  const isOver = phase === 'Failed' || phase === 'Succeeded';
  return [
    ...(isOver && running.length > 0 ? [`is ${phase} and runs ${running.join(', ')}`] : []),
    ...(new Set(running).size === running.length ? [] : [`runs twice: ${running.join(', ')}`]),
    ...(sandboxes > 1 ? [`has ${sandboxes} sandboxes`] : []),
  ];
}

/** Everything of pods but those that are wanted. */
export async function leftovers(world: World, wanted: ReadonlySet<string>): Promise<readonly string[]> {
  const { runtime, cgroups, machine, files } = world;
  const isLeft = (uid: string) => !wanted.has(uid);
  const names = await machine.files.names(`${settings.rootDir}/pods`);
  return [
    ...runtime.sandboxes().flatMap(({ podUid, id }) => (isLeft(podUid) ? [`sandbox ${id}`] : [])),
    ...runtime.containers().flatMap(({ podUid, id }) => (isLeft(podUid) ? [`container ${id}`] : [])),
    ...cgroups.directories().filter((path) => {
      const uid = /pod([0-9a-f]{32})/.exec(path)?.[1];
      return uid !== undefined && isLeft(uid);
    }),
    ...names.filter(isLeft).map((uid) => `directory of ${uid}`),
    ...files.paths().filter((path) => {
      const uid = /_([0-9a-f]{32})\//.exec(path)?.[1];
      return uid !== undefined && isLeft(uid);
    }),
    ...(await machine.files.names(settings.podLogsDir))
      .filter((name) => isLeft(name.split('_')[2] ?? ''))
      .map((name) => `log directory ${name}`),
  ];
}

/** What a kubelet without pods still remembers. */
export function remembered(world: World): readonly string[] {
  const kubelet = world.life?.kubelet;
  if (kubelet === undefined) return ['no kubelet runs'];
  return Object.entries(kubelet.held()).flatMap(([what, count]) =>
    count === 0 ? [] : [`${what}: ${count}`],
  );
}
