import type { ContainerStatus } from '../../kinds/index.ts';
import { type FlagTable, type FlagValues, KubelingError, parseFlags } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/**
 * Finds the one pod with this name, `name_namespace`, UID, or name in the manifest of a static pod.
 */
export function choosePod(pods: readonly Pod[], key: string, namespace: string | undefined): Pod {
  const here = pods.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
  const exact = here.filter(({ metadata: { name, namespace: space, uid } }) =>
    [name, uid, `${name}_${space}`].includes(key),
  );
  const found = exact.length > 0 ? exact : here.filter((pod) => isStaticName(pod, key));
  const [pod, ...rest] = found;
  if (pod !== undefined && rest.length === 0) return pod;
  const where = namespace === undefined ? '' : ` in the namespace ${namespace}`;
  if (pod === undefined) {
    const names = here.map(nameOf).join(', ') || 'none';
    throw new KubelingError(
      'STREAM_NO_POD',
      `There is no pod ${JSON.stringify(key)}${where} on this node; there are: ${names}`,
    );
  }
  throw new KubelingError(
    'STREAM_NO_POD',
    `${JSON.stringify(key)} matches ${found.map(nameOf).join(', ')}: name one of them`,
  );
}

/**
 * Whether the key is the manifest name of a static pod: its API name is this name plus the node
 * name.
 */
function isStaticName({ metadata: { name, namespace }, spec }: Pod, key: string): boolean {
  const fullName = `${name}_${namespace}`;
  const suffix = `-${spec.nodeName ?? ''}`;
  return name === `${key}${suffix}` || fullName === key.replace('_', `${suffix}_`);
}

function nameOf({ metadata: { name, namespace } }: Pod): string {
  return `${name}_${namespace}`;
}

const defaultContainerAnnotation = 'kubectl.kubernetes.io/default-container';

export interface ChosenContainer {
  readonly name: string;
  readonly stdin: boolean;
  readonly tty: boolean;
  /** The message that tells the user which container was chosen by default. */
  readonly notice: string | undefined;
}

/**
 * Chooses the named container, else the one in the default-container annotation, else the first.
 */
export function chooseContainer(pod: Pod, requested: string | undefined): ChosenContainer {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const all = [...containers, ...initContainers, ...ephemeralContainers];
  const name =
    requested ?? pod.metadata.annotations?.[defaultContainerAnnotation] ?? containers[0]?.name ?? '';
  const found = all.find((container) => container.name === name);
  const names = all.map((container) => container.name).join(', ');
  if (found === undefined) {
    throw new KubelingError(
      'STREAM_NO_CONTAINER',
      `The pod ${pod.metadata.name} has no container ${JSON.stringify(name)}; it has: ${names}`,
    );
  }
  const isChoice = requested === undefined && all.length > 1;
  const notice = isChoice ? `Defaulted container ${JSON.stringify(name)} out of: ${names}` : undefined;
  return { name, stdin: found.stdin ?? false, tty: found.tty ?? false, notice };
}

export interface CommandLine<F extends FlagTable> {
  readonly values: FlagValues<F>;
  readonly positionals: readonly string[];
  /** The arguments after "--"; undefined without "--". */
  readonly afterDashes: readonly string[] | undefined;
}

/** Parses the arguments of a command; reports all problems in one error. */
export function parseCommandLine<F extends FlagTable>(flags: F, argv: readonly string[]): CommandLine<F> {
  const end = argv.indexOf('--');
  const { values, positionals, problems } = parseFlags(flags, end < 0 ? argv : argv.slice(0, end));
  if (problems.length > 0) {
    const wrong = problems.map(({ flag, message }) => `${flag} ${message}`);
    throw new KubelingError('CLI_USAGE', `Cannot use these arguments: ${wrong.join('; ')}`);
  }
  return { values, positionals, afterDashes: end < 0 ? undefined : argv.slice(end + 1) };
}

export function containerStatusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  return [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find((each) => each.name === name);
}

/** Returns why a container cannot be attached to; undefined for a running container. */
export function whyNotRunning(pod: Pod, name: string): string | undefined {
  const { state, lastState } = containerStatusOf(pod, name) ?? {};
  if (state?.running !== undefined) return undefined;
  if (state?.terminated !== undefined)
    return `the container ${name} has terminated${exitOf(state.terminated)}`;
  const waits = [state?.waiting?.reason, state?.waiting?.message].filter((words) => (words ?? '') !== '');
  const last = lastState?.terminated;
  return [
    `the container ${name} is waiting to be started${waits.length > 0 ? `: ${waits.join(': ')}` : ''}`,
    ...(last === undefined ? [] : [`it last terminated${exitOf(last)}`]),
  ].join('; ');
}

function exitOf({
  exitCode,
  reason = '',
}: {
  readonly exitCode: number;
  readonly reason?: string | undefined;
}) {
  return ` with exit code ${exitCode}${reason === '' ? '' : ` (${reason})`}`;
}
