import { apiResources } from '../../../src/api/index.ts';
import type { SimulatedApi } from '../../simulator/index.ts';
import { fileNames, objectNames, type VolumeKind } from './pod-volumes.ts';

const namespace = 'default';
/** The average number of updates of the optional ConfigMap per deletion. */
const updatesPerAbsence = 3;

/** The ConfigMaps and Secrets that pods mount as files. */
export class VolumeObjects {
  #number = 0;
  /** The content of the optional ConfigMap; undefined while it does not exist. */
  #extra: string | undefined;

  /** The expected content of the files in a volume; undefined if the files must not exist. */
  said(kind: VolumeKind): string | undefined {
    return kind === 'extra' ? this.#extra : String(this.#number);
  }

  fill(api: SimulatedApi): void {
    const text = String(this.#number);
    const coded = Buffer.from(text).toString('base64');
    api.put(apiResources.configMaps, {
      metadata: { namespace, name: objectNames.config },
      data: everyFile(text),
    });
    api.put(apiResources.secrets, {
      metadata: { namespace, name: objectNames.secret },
      data: everyFile(coded),
    });
  }

  update(api: SimulatedApi): void {
    this.#number++;
    this.fill(api);
    this.#setExtra(api, this.#number % updatesPerAbsence === 0 ? undefined : String(this.#number));
  }

  comeOrGo(api: SimulatedApi): void {
    this.#setExtra(api, this.#extra === undefined ? String(this.#number) : undefined);
  }

  #setExtra(api: SimulatedApi, text: string | undefined): void {
    const [resource, name] = [apiResources.configMaps, objectNames.extra];
    if (text !== undefined) api.put(resource, { metadata: { namespace, name }, data: everyFile(text) });
    else if (this.#extra !== undefined) api.delete({ resource, namespace, name });
    this.#extra = text;
  }
}

function everyFile(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(fileNames.map((name) => [name, text]));
}
