"""The pages for people, a module for each part of the site. They show what the services give."""
