import { json, type Route } from './router.ts';

/** The configuration in effect, as it could be written to a file. What is secret in it must be masked already. */
export function configzRoute(config: () => Readonly<Record<string, unknown>>): Route {
  return { path: '/configz', methods: 'any', answer: () => json({ kubeletconfig: config() }) };
}
