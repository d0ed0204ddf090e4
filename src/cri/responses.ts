import { KubelingError } from '../lib/index.ts';
import type {
  ContainerStatusResponse,
  ImageStatusResponse,
  PodSandboxStatusResponse,
  StatusResponse,
} from './gen/runtime.ts';
import { type CriMethods, type CriOperation, operationNames } from './operations.ts';

type ResponseOf<Name extends CriOperation> = CriMethods[Name] extends { readonly response: infer Response }
  ? Response
  : never;

/** Required fields that are missing in a response. */
const checks: { readonly [Name in CriOperation]?: (response: ResponseOf<Name>) => readonly string[] } = {
  version: (response) =>
    missingFields(response, ['version', 'runtimeName', 'runtimeVersion', 'runtimeApiVersion']),
  status: missingFromStatus,
  runPodSandbox: (response) => missingFields(response, ['podSandboxId']),
  createContainer: (response) => missingFields(response, ['containerId']),
  podSandboxStatus: missingFromSandbox,
  containerStatus: missingFromContainer,
  exec: (response) => missingFields(response, ['url']),
  attach: (response) => missingFields(response, ['url']),
  portForward: (response) => missingFields(response, ['url']),
  pullImage: (response) => missingFields(response, ['imageRef']),
  imageStatus: missingFromImage,
};

/** Rejects a response without required fields. */
export function checkResponse(operation: CriOperation, response: unknown): void {
  const check = checks[operation] as ((response: unknown) => readonly string[]) | undefined;
  const missing = check?.(response) ?? [];
  if (missing.length === 0) return;
  throw new KubelingError(
    'CRI_BAD_ANSWER',
    `The runtime's response to ${operationNames[operation]} lacks ${missing.join(', ')}`,
    { details: { operation: operationNames[operation], missing } },
  );
}

function missingFields<T extends object>(
  response: T,
  names: readonly (keyof T & string)[],
): readonly string[] {
  return names.filter((name) => isUnset(response[name]));
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === '' || value === 0n;
}

function missingFromStatus({ status }: StatusResponse): readonly string[] {
  const types = new Set(status?.conditions.map((condition) => condition.type));
  return ['RuntimeReady', 'NetworkReady'].filter((type) => !types.has(type));
}

function missingFromSandbox({ status }: PodSandboxStatusResponse): readonly string[] {
  if (status === undefined) return ['status'];
  return [
    ...missingFields(status, ['id', 'metadata', 'createdAt']),
    ...missingFromMetadata(status.metadata, ['name', 'namespace', 'uid']),
  ];
}

function missingFromContainer({ status }: ContainerStatusResponse): readonly string[] {
  if (status === undefined) return ['status'];
  return [
    ...missingFields(status, ['id', 'metadata', 'createdAt', 'imageRef']),
    ...missingFromMetadata(status.metadata, ['name']),
    ...(isUnset(status.image?.image) ? ['image'] : []),
  ];
}

function missingFromMetadata<T extends object>(
  metadata: T | undefined,
  names: readonly (keyof T & string)[],
): readonly string[] {
  return metadata === undefined ? [] : missingFields(metadata, names).map((name) => `metadata.${name}`);
}

/** An image status without image is a valid response: the image is not present. */
function missingFromImage({ image }: ImageStatusResponse): readonly string[] {
  return image === undefined ? [] : missingFields(image, ['id', 'size']);
}
