import type { ContainerImage } from '../kinds/index.ts';
import { json, type Route } from './router.ts';

/** Every image of the node, the largest first: a Node object has room for some of them only. */
export function imagesRoute(images: () => readonly ContainerImage[]): Route {
  return { path: '/debug/images', methods: ['GET'], answer: () => json({ images: images() }) };
}
