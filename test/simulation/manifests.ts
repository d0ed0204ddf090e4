import type { ContainerConfig } from '../../src/cri/index.ts';
import type { YamlTree } from '../../src/lib/index.ts';
import type { ContainerScript } from '../../src/simulator/index.ts';
import { staticPodUid } from '../../src/sources/index.ts';

/** What the program of a simulated container does; the image tells nothing. */
export interface Behaviour {
  /** Runs for ever unless given. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** Whether it dies at once when asked to end, never, or after a while. */
  readonly onTerm?: 'die' | 'ignore' | number;
  /** Attempts before this one end at once with a failure. */
  readonly failsBefore?: number;
}

export interface ContainerSketch extends Behaviour {
  readonly name: string;
  readonly image: string;
}

export interface PodSketch {
  readonly name: string;
  readonly revision: number;
  readonly restartPolicy: 'Always' | 'OnFailure' | 'Never';
  readonly graceSeconds: number;
  /** How long it may be active; for ever unless given. */
  readonly deadlineSeconds?: number | undefined;
  readonly init: readonly ContainerSketch[];
  readonly containers: readonly ContainerSketch[];
}

export const manifestDirectory = '/etc/kubeling/manifests';
export const nodeName = 'node';

export const images = {
  present: 'localhost/app:1',
  pulled: 'registry.example/app:1',
  flaky: 'registry.example/flaky:1',
  missing: 'registry.example/missing:1',
} as const;

export function manifestPath(name: string): string {
  return `${manifestDirectory}/${name}.yaml`;
}

export function manifestText(sketch: PodSketch): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: sketch.name, labels: { revision: String(sketch.revision) } },
    spec: {
      restartPolicy: sketch.restartPolicy,
      terminationGracePeriodSeconds: sketch.graceSeconds,
      activeDeadlineSeconds: sketch.deadlineSeconds,
      ...(sketch.init.length > 0 && { initContainers: sketch.init.map(containerOf) }),
      containers: sketch.containers.map(containerOf),
    },
  });
}

/** The UID kubeling gives the pod of this sketch. */
export function uidOf(sketch: PodSketch): string {
  const place = { source: 'file', path: manifestPath(sketch.name), nodeName } as const;
  return staticPodUid(treeOf(JSON.parse(manifestText(sketch)) as Json), place);
}

export function fullNameOf(sketch: PodSketch): string {
  return `${sketch.name}-${nodeName}`;
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

const at = { line: 1, column: 1 };

function treeOf(value: Json): YamlTree {
  if (value === null || typeof value !== 'object') return { kind: 'scalar', value, at };
  if (isList(value)) return { kind: 'list', items: value.map(treeOf), at };
  const entries = Object.entries(value).map(([key, item]) => ({ key, at, value: treeOf(item) }));
  return { kind: 'map', entries, at };
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function containerOf({ name, image, ...behaviour }: ContainerSketch) {
  return { name, image, imagePullPolicy: 'IfNotPresent', command: ['app', JSON.stringify(behaviour)] };
}

/** Reads back what `manifestText` wrote. */
export function scriptOf(config: ContainerConfig): ContainerScript | undefined {
  const [program, text] = config.command;
  if (program !== 'app' || text === undefined) return undefined;
  const { runMs, exitCode, onTerm, failsBefore = 0 } = JSON.parse(text) as Behaviour;
  const script: ContainerScript = {
    onTerm: typeof onTerm === 'number' ? { afterMs: onTerm, exitCode: 0 } : (onTerm ?? 'die'),
  };
  if ((config.metadata?.attempt ?? 0) < failsBefore) return { ...script, runMs: 200, exitCode: 1 };
  return runMs === undefined ? script : { ...script, runMs, exitCode: exitCode ?? 0 };
}
