import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { KubelingError } from '../lib/index.ts';
import { type TarEntry, tarArchive } from './tar.ts';

/** An architecture in the notation of OCI platforms. */
export type Architecture = 'amd64' | 'arm64';

export interface ImageSpec {
  /** The full image reference with its tag. */
  readonly name: string;
  readonly architecture: Architecture;
  /** The files of the image; missing parent directories are created with mode 0755. */
  readonly files: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly workingDir?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const media = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  // The layer is uncompressed, so that its digest does not depend on a compressor.
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const;

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Returns the image architecture of this machine; throws for an unsupported one. */
export function imageArchitecture(nodeArch: string): Architecture {
  if (nodeArch === 'x64') return 'amd64';
  if (nodeArch === 'arm64') return 'arm64';
  throw new KubelingError(
    'CONTAINERD_IMAGE',
    `Cannot make images for this machine as its architecture must be x64 or arm64: current value is ${nodeArch}`,
  );
}

/**
 * Builds an OCI image layout as a tar archive for `ctr images import`. The result is identical for
 * the same spec.
 */
export function buildImage(spec: ImageSpec): Uint8Array {
  checkName(spec.name);
  const layer = blob(media.layer, tarArchive(withParents(spec.files)));
  const config = jsonBlob(media.config, imageConfig(spec, layer.digest));
  const manifest = jsonBlob(media.manifest, {
    schemaVersion: 2,
    mediaType: media.manifest,
    config: descriptor(config),
    layers: [descriptor(layer)],
  });
  return tarArchive([
    jsonFile('oci-layout', { imageLayoutVersion: '1.0.0' }),
    jsonFile('index.json', imageIndex(spec, manifest)),
    { path: 'blobs', kind: 'directory', mode: 0o755 },
    { path: 'blobs/sha256', kind: 'directory', mode: 0o755 },
    ...[layer, config, manifest].map(blobFile),
  ]);
}

function checkName(name: string): void {
  const isGood = /^[a-z0-9.-]+(:\d+)?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+:\w[\w.-]{0,127}$/.test(name);
  if (isGood) return;
  throw new KubelingError(
    'CONTAINERD_IMAGE',
    `Cannot make an image as its name must be HOST/PATH:TAG: current value is ${JSON.stringify(name)}`,
  );
}

function withParents(files: readonly TarEntry[]): readonly TarEntry[] {
  const listed = new Set(files.map((file) => file.path));
  const missing = new Set<string>();
  for (const { path } of files) {
    for (let at = dirname(path); at !== '.' && at !== '/'; at = dirname(at)) {
      if (!listed.has(at)) missing.add(at);
    }
  }
  const made = [...missing].map((path) => ({ path, kind: 'directory', mode: 0o755 }) as const);
  return [...files, ...made];
}

function imageConfig(spec: ImageSpec, layerDigest: string): object {
  return {
    created: '1970-01-01T00:00:00Z',
    architecture: spec.architecture,
    os: 'linux',
    config: {
      User: spec.user,
      Env: spec.env && Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
      Entrypoint: spec.entrypoint,
      Cmd: spec.command,
      WorkingDir: spec.workingDir,
      Labels: spec.labels,
    },
    rootfs: { type: 'layers', diff_ids: [layerDigest] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'kubeling' }],
  };
}

function imageIndex(spec: ImageSpec, manifest: Blob): object {
  const annotations = {
    // containerd reads the full name from the first annotation, other tools the tag from the
    // second.
    'io.containerd.image.name': spec.name,
    'org.opencontainers.image.ref.name': spec.name.slice(spec.name.lastIndexOf(':') + 1),
  };
  const platform = { architecture: spec.architecture, os: 'linux' };
  return {
    schemaVersion: 2,
    mediaType: media.index,
    manifests: [{ ...descriptor(manifest), platform, annotations }],
  };
}

function blob(mediaType: string, bytes: Uint8Array): Blob {
  return { mediaType, bytes, digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}` };
}

function jsonBlob(mediaType: string, value: object): Blob {
  return blob(mediaType, Buffer.from(JSON.stringify(value)));
}

function descriptor({ mediaType, digest, bytes }: Blob): object {
  return { mediaType, digest, size: bytes.length };
}

function blobFile({ digest, bytes }: Blob): TarEntry {
  return { path: `blobs/${digest.replace(':', '/')}`, kind: 'file', mode: 0o644, data: bytes };
}

function jsonFile(path: string, value: object): TarEntry {
  return { path, kind: 'file', mode: 0o644, data: Buffer.from(JSON.stringify(value)) };
}
