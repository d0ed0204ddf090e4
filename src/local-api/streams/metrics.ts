import { type ApiResource, apiResources, type JsonObject } from '../../api/index.ts';
import type { Clock } from '../../lib/index.ts';
import {
  type ApiCall,
  type ObjectReader,
  type ResourceEntry,
  type StoredObject,
  selection,
} from '../api/index.ts';
import { type KubeletDialer, requestKubelet } from './kubelet-dialer.ts';
import { kubeletOf } from './pod-target.ts';
import { notFound } from './refusals.ts';

export interface MetricsDeps {
  readonly kubelet: KubeletDialer;
  readonly clock: Clock;
}

/** The fields of the kubelet's stats summary that are used here. */
interface Summary {
  readonly node?: Usage;
  readonly pods?: readonly {
    readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
    readonly containers?: readonly (Usage & { readonly name: string })[];
  }[];
}

interface Usage {
  readonly cpu?: {
    readonly time?: string;
    readonly usageNanoCores?: number;
    readonly usageCoreNanoSeconds?: number;
  };
  readonly memory?: { readonly time?: string; readonly workingSetBytes?: number };
}

const nodeMetrics: ApiResource = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  plural: 'nodes',
  kind: 'NodeMetrics',
  scope: 'cluster',
};
const podMetrics: ApiResource = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  plural: 'pods',
  kind: 'PodMetrics',
  scope: 'namespace',
};

const apiVersion = 'metrics.k8s.io/v1beta1';
/** The window over which kubelets compute rates. */
const window = '10s';
const requestTimeoutMs = 10_000;
/** A kubelet computes CPU rates from two samples at this interval. */
const secondSampleMs = 1_050;
const maxSummaryBytes = 64 << 20;

/** The metrics.k8s.io resources; they are computed per request. */
export function metricsEntries(deps: MetricsDeps): readonly ResourceEntry[] {
  return [
    entry(nodeMetrics, async (call, objects) => await nodeUsages(call, objects, deps)),
    entry(podMetrics, async (call, objects) => await podUsages(call, objects, deps)),
  ];
}

type Measure = (call: ApiCall, objects: ObjectReader) => Promise<readonly JsonObject[]>;

function entry(resource: ApiResource, measure: Measure): ResourceEntry {
  return {
    resource,
    singular: '',
    shortNames: [],
    categories: [],
    verbs: ['get', 'list'],
    subresources: [],
    fieldSelectors: [],
    deleteReturns: 'status',
    storage: 'virtual',
    strategy: {
      handlers: {
        '': async (call, { objects }) => {
          const items = (await measure(call, objects)).filter(selected(call));
          if (call.name === undefined)
            return { kind: `${resource.kind}List`, apiVersion, metadata: {}, items };
          const [found] = items;
          if (found === undefined)
            throw notFound({ kind: `${resource.plural}.metrics.k8s.io`, name: call.name });
          return found;
        },
      },
    },
  };
}

function selected(call: ApiCall): (object: JsonObject) => boolean {
  const { user, query, namespace, name } = call;
  const { resource } = call.entry;
  const { test: isSelected } = selection(
    {
      user,
      verb: 'list',
      resource,
      namespace,
      labelSelector: query.get('labelSelector') ?? undefined,
      fieldSelector: query.get('fieldSelector') ?? undefined,
    },
    call.entry,
  );
  return (object) =>
    isSelected(object as StoredObject) &&
    (name === undefined || (object as StoredObject).metadata.name === name);
}

async function nodeUsages(
  { name }: ApiCall,
  objects: ObjectReader,
  deps: MetricsDeps,
): Promise<readonly JsonObject[]> {
  const nodes = objects
    .all(apiResources.nodes)
    .filter(({ metadata }) => (name ?? metadata.name) === metadata.name);
  const summaries = nodes.map(async (node) => {
    const summary = await stableSummaryOf(node, objects, deps, ({ node: self }) => [self]);
    const usage = usageOf(summary?.node);
    return usage === undefined ? [] : [measured('NodeMetrics', node, usage.time, { usage: usage.amounts })];
  });
  return (await Promise.all(summaries)).flat();
}

async function podUsages(
  { namespace, name }: ApiCall,
  objects: ObjectReader,
  deps: MetricsDeps,
): Promise<readonly JsonObject[]> {
  const nodes = objects.all(apiResources.nodes);
  const all = ({ pods = [] }: Summary) => pods.flatMap(({ containers = [] }) => containers);
  const summaries = await Promise.all(nodes.map((node) => stableSummaryOf(node, objects, deps, all)));
  const known = new Map(
    summaries
      .flatMap((summary) => summary?.pods ?? [])
      .map((pod) => [`${pod.podRef.namespace}/${pod.podRef.name}`, pod]),
  );
  return objects.all(apiResources.pods, namespace).flatMap((pod) => {
    const { metadata } = pod;
    if (name !== undefined && metadata.name !== name) return [];
    const stats = known.get(`${metadata.namespace}/${metadata.name}`);
    const containers = (stats?.containers ?? []).flatMap((container) => {
      const usage = usageOf(container);
      return usage === undefined ? [] : [{ name: container.name, usage: usage.amounts, time: usage.time }];
    });
    const time = containers.map((each) => each.time).sort()[0];
    if (time === undefined) return [];
    const usages = containers.map(({ time: _, ...rest }) => rest);
    return [measured('PodMetrics', pod, time, { containers: usages })];
  });
}

function measured(kind: string, of: StoredObject, time: string, rest: JsonObject): JsonObject {
  const { name, namespace, labels, creationTimestamp } = of.metadata;
  return {
    kind,
    apiVersion,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      creationTimestamp,
      ...(labels === undefined ? {} : { labels }),
    },
    timestamp: time,
    window,
    ...rest,
  };
}

/**
 * The usage of a container; undefined without both CPU and memory samples, because partial metrics
 * would show an idle pod.
 */
function usageOf(
  stats: Usage | undefined,
): { readonly time: string; readonly amounts: JsonObject } | undefined {
  const { cpu, memory } = stats ?? {};
  if (cpu?.usageNanoCores === undefined || memory?.workingSetBytes === undefined) return undefined;
  const kibibytes = Math.floor(memory.workingSetBytes / 1_024);
  const time = (cpu.time ?? memory.time ?? '').replace(/\.\d+Z$/, 'Z');
  return { time, amounts: { cpu: `${cpu.usageNanoCores}n`, memory: `${kibibytes}Ki` } };
}

/**
 * The stats summary of a node; undefined if it does not respond, so that metrics of other nodes are
 * still returned. Retries once for new containers, whose rates need a second sample.
 */
async function stableSummaryOf(
  node: StoredObject,
  objects: ObjectReader,
  deps: MetricsDeps,
  usagesOf: (summary: Summary) => readonly (Usage | undefined)[],
): Promise<Summary | undefined> {
  const { clock } = deps;
  const limit = new AbortController();
  const timer = clock.timer(requestTimeoutMs, () =>
    limit.abort(new Error('Timed out waiting for the kubelet')),
  );
  try {
    const first = await summaryOf(node, objects, deps, limit.signal);
    if (first === undefined || !usagesOf(first).some(isNew)) return first;
    await clock.sleep(secondSampleMs, limit.signal);
    return (await summaryOf(node, objects, deps, limit.signal)) ?? first;
  } catch {
    return undefined;
  } finally {
    timer.cancel();
  }
}

function isNew(usage: Usage | undefined): boolean {
  return usage?.cpu?.usageCoreNanoSeconds !== undefined && usage.cpu.usageNanoCores === undefined;
}

async function summaryOf(
  node: StoredObject,
  objects: ObjectReader,
  { kubelet, clock }: MetricsDeps,
  signal: AbortSignal,
): Promise<Summary | undefined> {
  try {
    const address = kubeletOf(node.metadata.name, objects, kubelet);
    const request = { method: 'GET', path: '/stats/summary', headers: [] };
    const response = await requestKubelet(address, kubelet, request, clock, signal);
    if (response.kind === 'upgraded' || response.response.statusCode !== 200) return undefined;
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response.response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxSummaryBytes) return undefined;
    }
    return JSON.parse(Buffer.concat(chunks).toString()) as Summary;
  } catch {
    return undefined;
  }
}
