import { createHash } from 'node:crypto';
import { decodeTree, KindTable } from '../../src/kinds/index.ts';
import type { YamlTree } from '../../src/lib/index.ts';
import { withPodDefaults } from '../../src/pods/defaults/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import { StaticUidGenerator } from '../../src/sources/uid/static-uid.ts';
import { gadget } from './devices/device-world.ts';
import {
  type ContainerSize,
  type ContainerSketch,
  type HookSketch,
  type PodSketch,
  type ProbeSketch,
  probeTypes,
  type RestartRuleSketch,
} from './sketch.ts';

export const manifestDirectory = '/etc/kubeling/manifests';
export const nodeName = 'node';

export function manifestPath(name: string): string {
  return `${manifestDirectory}/${name}.yaml`;
}

export function manifestText(sketch: PodSketch): string {
  return JSON.stringify(podOf(sketch));
}

function podOf(sketch: PodSketch) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: sketch.name, labels: { revision: String(sketch.revision) } },
    spec: {
      restartPolicy: sketch.restartPolicy,
      terminationGracePeriodSeconds: sketch.graceSeconds,
      activeDeadlineSeconds: sketch.deadlineSeconds,
      ...(sketch.priority !== undefined && { priority: sketch.priority }),
      ...(sketch.init.length > 0 && { initContainers: sketch.init.map(containerOf) }),
      containers: sketch.containers.map(containerOf),
      ...(sketch.ephemeral !== undefined && { ephemeralContainers: sketch.ephemeral.map(containerOf) }),
    },
  };
}

/** The pod as an API server returns it, with defaulted fields. */
export function apiPodOf(sketch: PodSketch, status: Pod['status']): Pod {
  const { metadata, spec } = withPodDefaults(JSON.parse(manifestText(sketch)), () => false);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: sketch.name, namespace: 'default', uid: podUid(uidOf(sketch)) },
    spec: { ...spec, nodeName },
    status,
  };
}

const kinds = new KindTable();
const uids = new StaticUidGenerator();

/** The UID of the described pod, derived from its manifest or assigned by the API. */
export function uidOf(sketch: PodSketch): string {
  if (sketch.source === 'api')
    return createHash('md5').update(`${sketch.name} ${sketch.revision}`).digest('hex');
  const path = { source: 'file', path: manifestPath(sketch.name), nodeName } as const;
  const tree = treeOf(JSON.parse(manifestText(sketch)) as Json);
  const { value } = decodeTree<Pod>(kinds, 'Pod', tree);
  return uids.uidOf(
    withPodDefaults(value, () => false),
    tree,
    path,
  );
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

function containerOf(sketch: ContainerSketch) {
  const {
    name,
    image,
    pullPolicy,
    restartPolicy,
    restartRules,
    postStart,
    preStop,
    probes = {},
    devices,
    size,
    restartsForSize,
    ...behaviour
  } = sketch;
  const hooks = {
    ...(postStart && { postStart: hookOf('post-start', postStart) }),
    ...(preStop && { preStop: hookOf('pre-stop', preStop) }),
  };
  return {
    name,
    image,
    imagePullPolicy: pullPolicy ?? 'IfNotPresent',
    command: ['app', JSON.stringify(behaviour)],
    ...(devices !== undefined && { resources: { limits: { [gadget]: `${devices}` } } }),
    ...(restartPolicy && { restartPolicy }),
    ...(size && { resources: resourcesOf(size) }),
    ...(restartsForSize && {
      resizePolicy: [{ resourceName: restartsForSize, restartPolicy: 'RestartContainer' }],
    }),
    ...(restartRules && { restartPolicyRules: restartRules.map(ruleOf) }),
    ...(Object.keys(hooks).length > 0 && { lifecycle: hooks }),
    ...Object.fromEntries(
      probeTypes.flatMap((type) => {
        const probe = probes[type];
        return probe === undefined ? [] : [[`${type}Probe`, probeOf(type, probe)]];
      }),
    ),
  };
}

function resourcesOf({ milliCpu, mebibytes }: ContainerSize) {
  const amounts = { cpu: `${milliCpu}m`, memory: `${mebibytes}Mi` };
  return { requests: amounts, limits: amounts };
}

function ruleOf({ action, operator, values }: RestartRuleSketch) {
  return { action, exitCodes: { operator, values } };
}

function hookOf(when: string, hook: HookSketch) {
  if (hook.kind === 'sleep') return { sleep: { seconds: hook.seconds } };
  return { exec: { command: ['hook', when, JSON.stringify(hook)] } };
}

function probeOf(type: string, probe: ProbeSketch) {
  const { periodSeconds, failureThreshold, initialDelaySeconds } = probe;
  const times = { periodSeconds, failureThreshold, initialDelaySeconds, timeoutSeconds: 1 };
  return probe.way === 'tcp'
    ? { tcpSocket: { port: 80 }, ...times }
    : { exec: { command: ['probe', type, JSON.stringify(probe)] }, ...times };
}
