import type {
  Container,
  DownwardAPIVolumeFile,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from '../../kinds/index.ts';
import { describeError } from '../../lib/index.ts';
import { findNamed, initContainersOf, type Pod } from '../../pods/index.ts';
import {
  cleanPath,
  joinMessages,
  type Payload,
  type PayloadBudget,
  type PayloadFile,
  unusable,
} from './payload.ts';

/**
 * Returns the value of a pod field or of a container resource, for environment variables and files.
 * Both methods throw for an unknown field.
 */
export interface DownwardValues {
  field(pod: Pod, selector: ObjectFieldSelector): string;
  resource(pod: Pod, container: Container, selector: ResourceFieldSelector): string;
}

/** The fields that are available in files; fields that are set only while the pod runs are not. */
const plainFields = ['metadata.name', 'metadata.namespace', 'metadata.uid'];
const mapFields = ['metadata.labels', 'metadata.annotations'];

export interface DownwardOptions {
  readonly defaultMode: number;
  readonly values: DownwardValues;
  readonly budget: PayloadBudget;
}

/**
 * Builds the files of a downwardAPI volume. Throws VOLUME_UNUSABLE with the problems of all items.
 */
export function downwardPayload(
  pod: Pod,
  items: readonly DownwardAPIVolumeFile[],
  { defaultMode, values, budget }: DownwardOptions,
): Payload {
  const files = new Map<string, PayloadFile>();
  const problems: string[] = [];
  // Caches the text of each field: many items may select all labels.
  const fields = new Map<string, Buffer>();
  const contentOf = (item: DownwardAPIVolumeFile): Buffer => {
    const key = item.fieldRef?.fieldPath;
    const known = key === undefined ? undefined : fields.get(key);
    const content = known ?? Buffer.from(valueOfItem(pod, item, values));
    if (key !== undefined) fields.set(key, content);
    return content;
  };
  for (const item of items) {
    try {
      const data = contentOf(item);
      budget.addFile(data.length);
      files.set(cleanPath(item.path), { data, mode: item.mode ?? defaultMode });
    } catch (error) {
      problems.push(describeError(error));
    }
  }
  if (problems.length > 0) throw unusable(joinMessages(problems));
  return files;
}

function valueOfItem(pod: Pod, item: DownwardAPIVolumeFile, values: DownwardValues): string {
  const { fieldRef, resourceFieldRef } = item;
  if (fieldRef !== undefined) return values.field(pod, checkedField(fieldRef));
  if (resourceFieldRef === undefined) return '';
  return values.resource(pod, containerOf(pod, resourceFieldRef), resourceFieldRef);
}

function checkedField(selector: ObjectFieldSelector): ObjectFieldSelector {
  const { fieldPath } = selector;
  const [, path] = /^([^[]+)\['.*'\]$/s.exec(fieldPath) ?? [];
  if (path !== undefined && !mapFields.includes(path)) {
    throw unusable(`fieldPath ${JSON.stringify(fieldPath)} does not support subscript`);
  }
  if (path === undefined && ![...plainFields, ...mapFields].includes(fieldPath)) {
    throw unusable(`unsupported fieldPath: ${fieldPath}`);
  }
  return selector;
}

/**
 * A resource field belongs to one container, but a volume belongs to the pod, so the item must name
 * the container.
 */
function containerOf(pod: Pod, { containerName = '' }: ResourceFieldSelector): Container {
  const found =
    findNamed(pod.spec.containers, containerName) ?? findNamed(initContainersOf(pod), containerName);
  if (found === undefined) throw unusable(`container ${containerName} not found`);
  return found;
}
