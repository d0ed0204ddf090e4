import { type ApiClient, type ApiObject, apiResources, isApiCode, type ObjectRef } from '../api/index.ts';
import type {
  CSIDriver,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  VolumeAttachment,
} from '../kinds/index.ts';
import { SingleFlight } from '../lib/index.ts';

/**
 * CSIDrivers, PersistentVolumes and other storage objects, read from the API server on each call;
 * undefined for a missing object. `secret` reads the secrets to which volumes refer: pod specs do
 * not name them, so the cache of the secrets that pods use does not contain them.
 */
export class StorageObjects {
  readonly #api: Pick<ApiClient, 'get' | 'patch'>;
  readonly #drivers = new SingleFlight<string, CSIDriver | undefined>();

  constructor(api: Pick<ApiClient, 'get' | 'patch'>) {
    this.#api = api;
  }

  async driver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined> {
    const ref = { resource: apiResources.csiDrivers, name };
    return await this.#drivers.run(name, (inner) => this.#find<CSIDriver>(ref, inner), signal);
  }

  async attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined> {
    return await this.#find<VolumeAttachment>({ resource: apiResources.volumeAttachments, name }, signal);
  }

  async secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined> {
    return await this.#find<Secret>({ resource: apiResources.secrets, namespace, name }, signal);
  }

  async claim(
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim | undefined> {
    return await this.#find({ resource: apiResources.persistentVolumeClaims, namespace, name }, signal);
  }

  async volume(name: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    return await this.#find<PersistentVolume>({ resource: apiResources.persistentVolumes, name }, signal);
  }

  /** Updates a claim. Rejects with API_CONFLICT when the claim has changed since it was read. */
  async changeClaim(
    { metadata = {} }: PersistentVolumeClaim,
    status: object,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    const { namespace, name = '', uid, resourceVersion } = metadata;
    const ref = { resource: apiResources.persistentVolumeClaims, namespace, name, subresource: 'status' };
    const body = { metadata: { uid, resourceVersion }, status };
    return await this.#api.patch<PersistentVolumeClaim>(ref, { kind: 'merge', body }, signal);
  }

  async #find<T extends ApiObject>(ref: ObjectRef, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#api.get<T>(ref, {}, signal);
    } catch (error) {
      if (isApiCode(error, 'API_NOT_FOUND')) return undefined;
      throw error;
    }
  }
}
