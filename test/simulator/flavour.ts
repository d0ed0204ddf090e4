import type { GrpcCode } from '../../src/protocols/grpc/index.ts';

/** The containerd version that is simulated. */
export type Flavour = 'containerd-1.6' | 'containerd-2';

/** The differences between the containerd versions that are visible over CRI. */
export interface FlavourFacts {
  readonly runtimeVersion: string;
  /** The result of stopping a missing sandbox or container. */
  readonly stopMissing: 'not-found' | 'succeeds';
  readonly criEvents: 'unsupported' | 'supported';
  readonly runtimeConfig: 'unsupported' | 'supported';
  readonly updateSandboxResources: 'unsupported' | 'supported';
  /** Whether containers can mount the files of other images. */
  readonly imageVolumes: 'unsupported' | 'supported';
  /** Whether statuses contain the image ID, the user and the stop signal. */
  readonly statusDetails: 'few' | 'all';
  /** The error code for a name that is already in use. */
  readonly nameTakenCode: GrpcCode;
  /** The prefix of the error for a container name that is already in use. */
  containerNameTaken(name: string): string;
  unknownHandler(sandboxId: string, handler: string): string;
  /** The error of creating a container in a sandbox whose process has exited. */
  sandboxNotRunning(sandboxId: string): { readonly code: GrpcCode; readonly message: string };
  /** Whether the first sample of a container's CPU usage already contains a rate. */
  readonly firstCpuRate: 'zero' | 'none';
}

export const flavours: { readonly [Name in Flavour]: FlavourFacts } = {
  'containerd-1.6': {
    runtimeVersion: '1.6.20',
    stopMissing: 'not-found',
    criEvents: 'unsupported',
    runtimeConfig: 'unsupported',
    updateSandboxResources: 'unsupported',
    imageVolumes: 'unsupported',
    statusDetails: 'few',
    nameTakenCode: 'UNKNOWN',
    containerNameTaken: (name) => `failed to reserve container name "${name}"`,
    unknownHandler: (_id, handler) =>
      `failed to get sandbox runtime: no runtime for "${handler}" is configured`,
    sandboxNotRunning: (id) => ({
      code: 'NOT_FOUND',
      message: `failed to get sandbox container task: no running task found: task ${id} not found: not found`,
    }),
    firstCpuRate: 'zero',
  },
  'containerd-2': {
    runtimeVersion: '2.3.4',
    stopMissing: 'succeeds',
    criEvents: 'supported',
    runtimeConfig: 'supported',
    updateSandboxResources: 'supported',
    imageVolumes: 'supported',
    statusDetails: 'all',
    nameTakenCode: 'FAILED_PRECONDITION',
    containerNameTaken: (name) =>
      `failed to reserve container name "${name}"; check if another CreateContainer request is in progress`,
    unknownHandler: (id, handler) =>
      `unable to get OCI runtime for sandbox "${id}": no runtime for "${handler}" is configured`,
    sandboxNotRunning: (id) => ({
      code: 'UNKNOWN',
      message: `sandbox container "${id}" is not running`,
    }),
    firstCpuRate: 'none',
  },
};
