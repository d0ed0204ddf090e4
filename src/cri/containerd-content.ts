import { type Clock, withDeadline } from '../lib/index.ts';
import type { ServiceClient } from '../protocols/grpc/index.ts';
import { translateError } from './errors.ts';
import type { ContentMethods } from './gen/containerd.ts';

/** Something that is being written into containerd's store of contents. */
export interface Ingest {
  /** What it is, such as layer-sha256: followed by a digest. */
  readonly ref: string;
  readonly bytes: number;
  /** 0 when nobody knows how much there will be. */
  readonly totalBytes: number;
}

const criNamespace = 'k8s.io';
/** It is asked for again and again, so an answer that is late is of no use. */
const limitMs = 5_000;

const sourceLabel = 'containerd.io/distribution.source.';
const childLabel = 'containerd.io/gc.ref.content';

/**
 * The digests of all that containerd knows to belong to a repository, such as `r.io/team/app`: what is there already, and
 * what its manifests name. Of an image that is being pulled its manifest comes first.
 */
export async function readContentOf(
  content: ServiceClient<ContentMethods>,
  clock: Clock,
  repository: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const slash = repository.indexOf('/');
  const label = `${sourceLabel}${repository.slice(0, slash)}`;
  const path = repository.slice(slash + 1);
  try {
    return await withDeadline(
      { clock, ms: limitMs, what: 'ask containerd what it has of a repository' },
      (inner) => collectDigests(content, label, path, inner),
      signal,
    );
  } catch (error) {
    throw translateError('pullImage', error, signal);
  }
}

async function collectDigests(
  content: ServiceClient<ContentMethods>,
  label: string,
  path: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const digests = new Set<string>();
  const request = { filters: [`labels."${label}"`] };
  const metadata = { 'containerd-namespace': criNamespace };
  for await (const { info } of content.list(request, { signal, metadata })) {
    for (const { digest, labels } of info) {
      // The same content may come from several repositories of a registry.
      if (!(labels[label] ?? '').split(',').includes(path)) continue;
      digests.add(digest);
      for (const [name, value] of Object.entries(labels)) if (name.startsWith(childLabel)) digests.add(value);
    }
  }
  return digests;
}

/** Rejects with CRI_UNSUPPORTED at runtimes that are not containerd. */
export async function readIngests(
  content: ServiceClient<ContentMethods>,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Ingest[]> {
  const metadata = { 'containerd-namespace': criNamespace };
  try {
    const { statuses } = await withDeadline(
      { clock, ms: limitMs, what: 'ask containerd what it is writing' },
      (inner) => content.listStatuses({}, { signal: inner, timeoutMs: limitMs, metadata }),
      signal,
    );
    return statuses.map(({ ref, offset, total }) => ({
      ref,
      bytes: Number(offset),
      totalBytes: Number(total),
    }));
  } catch (error) {
    throw translateError('pullImage', error, signal);
  }
}
