import type { PodUid } from '../../src/pods/index.ts';
import { settings } from './kubelet-life.ts';
import { lastingOf, mayEndOtherwise, outcomeOf } from './outcome.ts';
import { unlikeItsSize } from './resizes/resize-rest.ts';
import { type ContainerSketch, everyContainer, type PodSketch } from './sketch.ts';
import type { World } from './world.ts';

const farMs = 10 * 60_000;
const phases = { running: 'Running', succeeded: 'Succeeded', failed: 'Failed' } as const;

/**
 * Differences between a desired pod and its expected state. `fate` is `disturbed` if the pod's
 * containers exited differently from its generated description.
 */
export function unsettled(
  environment: World,
  uid: string,
  sketch: PodSketch,
  fate: 'left-alone' | 'disturbed',
): readonly string[] {
  const kubelet = environment.life?.kubelet;
  const outcome = outcomeOf(sketch);
  const status = kubelet?.state.statuses.getPodStatus(uid as PodUid);
  if (status?.reason === 'Evicted')
    return stillThere(environment, uid).map((what) => `${uid} was evicted and ${what}`);
  const observed: Seen = {
    phase: status?.phase ?? 'unknown',
    running: environment.runtime.runningContainers().filter((each) => each.podUid === uid),
    sandboxes: environment.runtime.sandboxes().filter((each) => each.podUid === uid && each.running).length,
  };
  const told = (problems: readonly string[]) =>
    problems.map((problem) => `${uid} of ${sketch.name} ${problem}`);
  // A pod rejected for lack of devices stays rejected.
  if (status?.reason === 'UnexpectedAdmissionError' && everyContainer(sketch).some(hasDevices))
    return told(unsound(observed));
  if (outcome === 'never-settles')
    return kubelet?.control.workers.activePod(uid as PodUid) === undefined ? [`${uid} has no worker`] : [];
  if (isFarFromDeadline(environment, uid, sketch)) return [];
  const volumeProblems =
    environment.cluster?.hadVolumes(uid) === true ? unlikeItsVolumes(environment, uid, observed) : [];
  if (sketch.mayBeRefused === true && observed.phase === 'Failed') return [];
  const sizeProblems = unlikeItsSize(environment, uid, sketch);
  const mayDiffer = fate === 'disturbed' && mayEndOtherwise(sketch);
  const problems = mayDiffer ? unsound(observed) : unlike(observed, withFate(sketch, fate), outcome);
  return told([...problems, ...volumeProblems, ...sizeProblems]);
}

function hasDevices({ devices = 0 }: ContainerSketch): boolean {
  return devices > 0;
}

function stillThere({ runtime }: World, uid: string): readonly string[] {
  return [
    ...runtime.runningContainers().flatMap(({ podUid, name }) => (podUid === uid ? [`runs ${name}`] : [])),
    ...runtime
      .sandboxes()
      .flatMap(({ podUid, running }) => (podUid === uid && running ? ['has a sandbox'] : [])),
  ];
}

/**
 * Removes ephemeral containers from the expected state of a pod whose containers exited differently
 * from its generated description, because ephemeral containers are never restarted.
 */
function withFate(sketch: PodSketch, fate: 'left-alone' | 'disturbed'): PodSketch {
  return fate === 'left-alone' ? sketch : { ...sketch, ephemeral: [] };
}

/**
 * Whether the active deadline is far away: after the clock was set back it may be much later than
 * the spec requests.
 */
export function isFarFromDeadline(environment: World, uid: string, { deadlineSeconds }: PodSketch): boolean {
  const startTime = environment.life?.kubelet.state.statuses.getPodStatus(uid as PodUid)?.startTime;
  if (deadlineSeconds === undefined || startTime === undefined) return false;
  return Date.parse(startTime) + deadlineSeconds * 1_000 - environment.clock.now() > farMs;
}

/**
 * Differences from the expected mounts: a running pod has all volumes of its spec mounted, a
 * terminated pod none.
 */
function unlikeItsVolumes({ volumes }: World, uid: string, { phase, running }: Seen): readonly string[] {
  if (volumes === undefined) return [];
  if (phase === 'Succeeded' || phase === 'Failed')
    return volumes.mountedFor(uid).map((place) => `is ${phase} and has ${place} mounted`);
  return running.length === 0 ? [] : [...volumes.missing(uid, 'own'), ...volumes.outdated(uid)];
}

interface Seen {
  readonly phase: string;
  readonly running: readonly { readonly name: string; readonly attempt: number }[];
  readonly sandboxes: number;
}

function unlike(seen: Seen, sketch: PodSketch, outcome: keyof typeof phases): readonly string[] {
  // An instance whose attempt number is below `failsBefore` runs only until it fails, so it is not
  // counted as running permanently.
  const stays = ({ name, failsBefore = 0 }: ContainerSketch) =>
    seen.running.filter((each) => each.name === name && each.attempt >= failsBefore).length;
  const expected = outcome === 'running' ? lastingOf(sketch) : [];
  return [
    ...(seen.phase === phases[outcome] ? [] : [`is ${seen.phase}, expected ${outcome}`]),
    ...expected.flatMap((each) =>
      stays(each) === 1 ? [] : [`has ${stays(each)} instances of ${each.name}`],
    ),
    ...seen.running
      .filter(({ name }) => expected.every((each) => each.name !== name) && !name.startsWith('debug'))
      .map(({ name }) => `runs ${name}`),
    ...(seen.sandboxes === Math.sign(expected.length) ? [] : [`has ${seen.sandboxes} sandboxes`]),
  ];
}

/**
 * Contradictions in the state of a pod whose containers exited differently from its generated
 * description: it may have terminated early, or been restarted because the runtime lost it.
 */
function unsound({ phase, running: instances, sandboxes }: Seen): readonly string[] {
  const running = instances.map(({ name }) => name);
  const isOver = phase === 'Failed' || phase === 'Succeeded';
  return [
    ...(isOver && running.length > 0 ? [`is ${phase} and runs ${running.join(', ')}`] : []),
    ...(new Set(running).size === running.length ? [] : [`runs twice: ${running.join(', ')}`]),
    ...(sandboxes > 1 ? [`has ${sandboxes} sandboxes`] : []),
  ];
}

/** All state on the node of pods that are not desired. */
export async function leftovers(
  environment: World,
  expected: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { runtime, cgroups, machine, files } = environment;
  const isLeft = (uid: string) => !expected.has(uid);
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
    ...(environment.volumes?.leftovers(expected) ?? []),
  ];
}

/** The in-memory entries that a kubelet still holds after all pods were removed. */
export function remembered(environment: World): readonly string[] {
  const kubelet = environment.life?.kubelet;
  if (kubelet === undefined) return ['no kubelet is running'];
  return Object.entries(kubelet.endpoints.entryCounts()).flatMap(([what, count]) =>
    count === 0 ? [] : [`${what}: ${count}`],
  );
}
