import type { Container, ContainerPort, LifecycleHandler } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { specHash } from './spec-hash.ts';

const names = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  deletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
} as const;

/** What a container's annotations remember of its spec, for the day the spec is gone. */
export interface AnnotatedContainer {
  /** Empty when missing: such a container counts as changed. */
  readonly hash: string;
  readonly restartCount: number;
  readonly terminationMessagePath: string;
  readonly terminationMessagePolicy: string;
  readonly preStop: LifecycleHandler | undefined;
  readonly ports: readonly ContainerPort[];
  readonly deletionGraceSeconds: number | undefined;
  readonly terminationGraceSeconds: number | undefined;
}

/** `others` are those of devices; ours win over them. */
export function containerAnnotations(
  pod: Pod,
  container: Container,
  restartCount: number,
  others: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const preStop = container.lifecycle?.preStop;
  const ports = container.ports ?? [];
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  return {
    ...others,
    [names.hash]: specHash(container),
    [names.restartCount]: `${restartCount}`,
    [names.terminationMessagePath]: container.terminationMessagePath ?? '',
    [names.terminationMessagePolicy]: container.terminationMessagePolicy ?? '',
    ...given(names.preStopHandler, preStop === undefined ? undefined : JSON.stringify(preStop)),
    ...given(names.ports, ports.length === 0 ? undefined : JSON.stringify(ports)),
    ...given(names.deletionGracePeriod, deletionGracePeriodSeconds?.toString()),
    ...given(names.terminationGracePeriod, terminationGracePeriodSeconds?.toString()),
  };
}

function given(name: string, value: string | undefined): Record<string, string> {
  return value === undefined ? {} : { [name]: value };
}

/** What cannot be read counts as not there: somebody else may have written it. */
export function readContainerAnnotations(from: Readonly<Record<string, string>>): AnnotatedContainer {
  const ports = parsed(from[names.ports]);
  const preStop = parsed(from[names.preStopHandler]);
  return {
    hash: from[names.hash] ?? '',
    restartCount: whole(from[names.restartCount]) ?? 0,
    terminationMessagePath: from[names.terminationMessagePath] ?? '',
    terminationMessagePolicy: from[names.terminationMessagePolicy] ?? '',
    preStop: typeof preStop === 'object' && preStop !== null ? (preStop as LifecycleHandler) : undefined,
    ports: Array.isArray(ports) ? (ports as ContainerPort[]) : [],
    deletionGraceSeconds: whole(from[names.deletionGracePeriod]),
    terminationGraceSeconds: whole(from[names.terminationGracePeriod]),
  };
}

function whole(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
